package view

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

//go:embed report.html
var reportPage string

// page includes all its resources, because it may be read without a network.
var page = template.Must(template.New("report").Parse(reportPage))

// ReportOptions configures a report.
type ReportOptions struct {
	From, Until time.Time
	// Node selects one node, and omits everything else. "" means all nodes.
	Node string
	// Lost lists the periods for which the journal lost its events.
	Lost   []Gap
	Words  *words.Vocabulary
	Lookup func(seq uint64) (journal.Event, bool)
	// Origin returns the first event of an action, if there is one. It may be nil.
	Origin func(action string) (journal.Event, bool)
}

// Gap is a period without events. From is zero if unknown.
type Gap struct{ From, Until time.Time }

// String describes the gap.
func (g Gap) String() string {
	if g.From.IsZero() {
		return fmt.Sprintf("The journal lost some of the events before %s; since when is unknown.", words.Stamp(g.Until))
	}
	return fmt.Sprintf("The journal lost the events between %s and %s.", words.Stamp(g.From), words.Stamp(g.Until))
}

// report is the content of the page.
type report struct {
	From, Until, Node, Version, Host, Journal, Cluster string
	LastSeq                                            uint64
	Lost                                               []Gap
	Verdict                                            api.Overall
	Headline                                           string
	Problems                                           []reportedProblem
	chart
	Rows []reportedLine
	Tree string
}

type reportedProblem struct{ Reason, Since, Advice, Command string }

// reportedLine is one line of a summary.
type reportedLine struct{ Began, Took, What, Outcome string }

// Report writes an HTML page about a period: the present verdict, the states of nodes and components, and EKCO's
// actions with their reasons.
func Report(w io.Writer, status api.Status, events iter.Seq2[journal.Event, error], options ReportOptions) error {
	if options.Node != "" {
		status = selectName(status, options.Node)
	}
	var treeText strings.Builder
	branches := newTree(&treeText, Options{Words: options.Words, Now: options.Until, Lookup: options.Lookup})
	lines := newDigest(io.Discard, Options{Words: options.Words, Now: options.Until, Origin: options.Origin, Lookup: options.Lookup})
	states := newStates(options, status.Journal.FirstTime)
	for event, err := range events {
		if err != nil {
			return err
		}
		if err := lines.Event(event); err != nil {
			return err
		}
		states.event(event.Decoded())
		if event.Action != "" || concernsActions(event.Type) {
			if err := branches.addActionEvent(event); err != nil {
				return err
			}
		}
	}
	if err := branches.Flush(); err != nil {
		return err
	}
	states.addPresent(status)
	shown := reportOf(status, options)
	shown.chart, shown.Rows, shown.Tree = states.chart(), lines.rows(), treeText.String()
	return page.Execute(w, shown)
}

// concernsActions reports whether events of this type affect actions, although they belong to no action.
func concernsActions(t journal.Type) bool {
	switch t {
	case journal.TypePolicyRefused, journal.TypePolicyLifted, journal.TypePauseSet, journal.TypePauseCleared:
		return true
	}
	return false
}

// addActionEvent adds only events that belong to an action.
func (t *tree) addActionEvent(event journal.Event) error {
	if event.Action == "" {
		t.follow(event.Decoded())
		t.addRefusals(event.Decoded())
		return nil
	}
	return t.Event(event)
}

func reportOf(status api.Status, options ReportOptions) report {
	headline, _, _ := strings.Cut(strings.Join(verdictLines(status, options.Words, style{}), "\n"), "\n")
	shown := report{
		From: words.Stamp(later(options.From, status.Journal.FirstTime)), Until: words.Stamp(options.Until), Node: options.Node,
		Version: orDash(status.Operator.Version), Host: orDash(status.Operator.Host), Journal: orDash(status.Journal.JournalID),
		Cluster: status.Journal.ClusterUID, LastSeq: status.Journal.LastSeq, Lost: options.Lost, Verdict: status.Verdict, Headline: headline,
	}
	for _, problem := range status.Problems {
		row := reportedProblem{Reason: Clean(problem.Reason), Since: "-", Advice: Clean(problem.Advice), Command: Clean(problem.Command)}
		if problem.Since != nil {
			row.Since = words.Stamp(*problem.Since)
		}
		shown.Problems = append(shown.Problems, row)
	}
	return shown
}

// rows returns the lines of the digest.
func (d *digest) rows() []reportedLine {
	var rows []reportedLine
	for _, line := range d.sortedLines() {
		rows = append(rows, reportedLine{Began: d.beganText(line), Took: d.tookText(line), What: Clean(line.what), Outcome: Clean(line.outcomeText())})
	}
	return rows
}
