package view

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func yielding(events []journal.Event, last error) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if last != nil {
			yield(journal.Event{}, last)
		}
	}
}

// element is one of a page: its name, its attributes, and the text in it.
type element struct {
	name, text string
	attrs      map[string]string
}

// elements reads a page strictly: each element must be closed.
func elements(t *testing.T, page []byte) (all []*element) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(page))
	decoder.Entity = xml.HTMLEntity
	var open []*element
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		switch now := token.(type) {
		case xml.StartElement:
			e := &element{name: now.Name.Local, attrs: map[string]string{}}
			for _, attr := range now.Attr {
				e.attrs[attr.Name.Local] = attr.Value
			}
			open, all = append(open, e), append(all, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			for _, e := range open {
				e.text += string(now)
			}
		}
	}
}

func reported(t *testing.T, status api.Status, options ReportOptions) []*element {
	t.Helper()
	var page bytes.Buffer
	options.Words = vocabulary
	if err := Report(&page, status, yielding(wholeStory(t), nil), options); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "ZgotmplZ") {
		t.Errorf("something was left out as unsafe:\n%s", page.String())
	}
	return elements(t, page.Bytes())
}

func TestAReportTellsEverythingInOnePage(t *testing.T) {
	status := presentStatus()
	api.Judge(&status, vocabulary.Verb)
	page := reported(t, status, ReportOptions{From: began.Add(-time.Hour), Until: began.Add(time.Hour)})
	text := page[0].text
	for _, want := range []string{
		"NEEDS YOU: " + headline(status.Problems[0]), status.Problems[0].Command, "worker-2", "purge node worker-2 (purge-worker-2-18)", "cli:root@primary-0 paused everything",
		"├─ delete-node", "waited 1s before delete-node: purge-x runs (OneAtATime)", "because of #5",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	var titles []string
	for _, e := range page {
		if e.name == "rect" && e.text != "" {
			titles = append(titles, e.text)
		}
		for name, value := range e.attrs {
			if strings.Contains(name, "href") || strings.Contains(name, "src") || strings.Contains(value, "http:") || strings.Contains(value, "https:") {
				t.Errorf("<%s> loads %s=%s", e.name, name, value)
			}
		}
		if e.name == "script" || e.name == "link" || e.name == "img" {
			t.Errorf("the page has a <%s>", e.name)
		}
	}
	for _, want := range []string{"Healthy: 2026-11-21T00:00:00Z to 2026-11-21T01:00:04Z", "Unknown: 2026-11-21T01:00:04Z to ", "clear-worker-2-9, done: 2026-11-21T01:00:08Z to 2026-11-21T01:00:13Z, 5s"} {
		if !slices.ContainsFunc(titles, func(title string) bool { return strings.HasPrefix(title, want) }) {
			t.Errorf("nothing drawn is %q; there are\n%s", want, strings.Join(titles, "\n"))
		}
	}
}

func TestTheLabelOfAStateIsAboveTheBarOfAnAction(t *testing.T) {
	number := func(e *element, attr string) int {
		n, err := strconv.Atoi(e.attrs[attr])
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		return n
	}
	var labels, bars []int // the lower end of the label and the upper end of the bar, below the top of the lane
	for _, e := range reported(t, presentStatus(), ReportOptions{From: began.Add(-time.Hour), Until: began.Add(time.Hour)}) {
		switch {
		case e.attrs["class"] == "state":
			labels = append(labels, (number(e, "y")+number(e, "dy"))%laneHeight)
		case e.name == "rect" && e.attrs["fill"] == "#333" && e.text != "":
			bars = append(bars, number(e, "y")%laneHeight)
		}
	}
	if len(labels) == 0 || len(bars) == 0 || slices.Max(labels) >= slices.Min(bars) {
		t.Errorf("labels end at %v, bars begin at %v", labels, bars)
	}
}

func TestAReportIsNotChangedByWhatNamesAreLike(t *testing.T) {
	const wicked = `w"><script>alert(1)</script>`
	status := api.Status{Now: began, Verdict: api.OverallNeedsYou, Nodes: []api.NodeStatus{{Name: wicked, State: "<b>"}}, Problems: []api.Problem{{NeedsYou: true, Reason: wicked, Advice: hostile}}}
	page := reported(t, status, ReportOptions{From: began.Add(-time.Hour), Until: began.Add(time.Hour)})
	if slices.ContainsFunc(page, func(e *element) bool { return e.name == "script" || e.name == "b" }) {
		t.Error("a name became an element")
	}
	if !strings.Contains(page[0].text, wicked) || strings.ContainsRune(page[0].text, '\x1b') {
		t.Error("a name is not there as it is")
	}
}

func TestAReportOfANodeLeavesOutTheOthers(t *testing.T) {
	status := api.Status{Now: began, Nodes: []api.NodeStatus{{Name: "worker-77", UID: "a", State: fsmnode.Healthy}, {Name: "worker-8", UID: "b", State: fsmnode.Healthy}}}
	page := reported(t, status, ReportOptions{From: began.Add(-time.Hour), Until: began, Node: "worker-8"})
	if strings.Contains(page[0].text, "worker-77") || !strings.Contains(page[0].text, "node worker-8") {
		t.Errorf("it says\n%s", page[0].text)
	}
}

func TestAReportOfWhatCannotBeReadIsAnError(t *testing.T) {
	broken := errors.New("the disk is gone")
	err := Report(io.Discard, api.Status{}, yielding(nil, broken), ReportOptions{Words: vocabulary, From: began, Until: began})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestAReportSaysOfWhichTimesNothingIsKnown(t *testing.T) {
	status := presentStatus()
	status.Journal.FirstTime = began.Add(-time.Minute)
	page := reported(t, status, ReportOptions{From: began.Add(-time.Hour), Until: began.Add(time.Hour), Lost: []Gap{
		{From: began.Add(time.Second), Until: began.Add(3 * time.Second)}, {Until: began.Add(time.Minute)},
	}})
	for _, want := range []string{
		"The journal lost the events between 2026-11-21T01:00:01Z and 2026-11-21T01:00:03Z.", "The journal lost some of the events before 2026-11-21T01:01:00Z",
		"not known: 2026-11-21T01:00:01Z to 2026-11-21T01:00:03Z", "Healthy: 2026-11-21T00:59:00Z to ", "not known: 2026-11-21T00:59:00Z to 2026-11-21T01:01:00Z",
	} {
		if !strings.Contains(page[0].text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if strings.Contains(page[0].text, "Healthy: 2026-11-21T00:00:00Z") {
		t.Error("a node was healthy before the journal began")
	}
}

func TestTheChartBeginsWhereAnythingIsKnown(t *testing.T) {
	asked, begun := began.Add(-7*24*time.Hour), began.Add(-time.Hour)
	chart := newStates(ReportOptions{From: asked, Until: began}, begun)
	if ticks := chart.ticks(); chart.x(begun) != laneFrom || chart.x(began) != laneFrom+laneWidth || ticks[0].Label != begun.Format(stampOfTick) {
		t.Errorf("it goes from %v to %v, and its first tick is %+v", chart.x(begun), chart.x(began), ticks[0])
	}
}

func TestAChartOfAFewMinutesOrSecondsRepeatsNoLabel(t *testing.T) {
	for _, whole := range []time.Duration{0, time.Second, 90 * time.Second, 3 * time.Minute, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour} {
		var labels []string
		for _, tick := range newStates(ReportOptions{Until: began.Add(whole)}, began).ticks() {
			labels = append(labels, tick.Label)
		}
		if len(slices.Compact(slices.Clone(labels))) != len(labels) || len(labels) == 0 {
			t.Errorf("of %s: %q", whole, labels)
		}
	}
}

func TestAReportNamesTheClusterItsOwnPeriodAndWhatAnOpenActionDoes(t *testing.T) {
	status := presentStatus()
	status.Journal.FirstTime, status.Journal.ClusterUID = began, "uid-of-the-cluster"
	status.Actions[0].ID = "purge-worker-9-33" // the story leaves it open
	page := reported(t, status, ReportOptions{From: began.Add(-7 * 24 * time.Hour), Until: began.Add(time.Hour)})
	for _, want := range []string{"2026-11-21T01:00:00Z to 2026-11-21T02:00:00Z, all times", "uid-of-the-cluster", "purge-worker-9-33, " + string(status.Actions[0].Status)} {
		if !strings.Contains(page[0].text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if !slices.ContainsFunc(page, func(e *element) bool { return e.attrs["class"] == "state" && e.text == "Healthy" }) {
		t.Error("no box has the name of its state")
	}
}
