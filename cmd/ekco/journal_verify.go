package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// unproved is what a sound chain does not say.
const unproved = `Who can write the file could have written all of it anew, with a chain of its own. To
rule that out, keep the head in another place and compare: ekco journal verify --expect %s
`

// hashName is the name of the hash, where it stands before one.
const hashName = "sha256:"

func newJournalVerifyCommand(a *app) *cobra.Command {
	var output, expect string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check every event and the chain that holds them together",
		Long: `Checks the whole journal: that every record is as it was written and that none is
missing. While an operator runs it checks the journal in use, otherwise the file,
in a process of its own. It prints the head: the number and the hash of the last event,
which stands for all events before it, and of each time that the journal lost events
which they were, and of what time nothing is known. With --expect it also checks that
an event has the hash that it once had. The exit code is 1 if anything is wrong, and 3
if the file is not a journal of EKCO at all.`,
		Example: `  ekco journal verify
  ekco journal verify --journal ./journal.db -o json
  ekco journal verify --expect 34:9e01…`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			expected, err := readPosition(expect)
			if err != nil {
				return err
			}
			return a.withWarned(cmd.Context(), cmd, func(backend *connection) error {
				result, err := backend.Verify(cmd.Context())
				if err != nil {
					return err
				}
				if result.OK {
					if err := audit(cmd.Context(), backend, &result, expected); err != nil {
						return err
					}
				}
				return a.showVerdict(result, output)
			})
		},
	}
	cmd.Flags().StringVar(&expect, "expect", "", "also check that this event has this hash, SEQ:HASH as an earlier verify printed it")
	outputFlag(cmd, &output, "text", "text", "json", "yaml")
	return cmd
}

// readPosition reads SEQ:HASH; the zero Position for nothing. What "verify" prints can be
// given back as it stands.
func readPosition(text string) (at journal.Position, err error) {
	if text == "" {
		return at, nil
	}
	head := strings.Replace(strings.TrimPrefix(text, "#"), " ", ":", 1)
	seq, hash, found := strings.Cut(head, ":")
	at.Seq, err = strconv.ParseUint(seq, 10, 64)
	if err == nil && found {
		err = at.Hash.UnmarshalText([]byte(strings.TrimPrefix(hash, hashName)))
	}
	if err != nil || !found || at.Seq == 0 {
		return at, usagef("--expect is %q: want the number of an event and its hash, like 34:9e01… with 64 digits", text)
	}
	return at, nil
}

// audit adds to a sound journal's result what its events say: whether it ever lost events,
// and whether it has the event that is expected.
func audit(ctx context.Context, backend api.Backend, result *api.VerifyResult, expected journal.Position) error {
	var err error
	result.Losses, err = losses(ctx, backend, time.Time{}, lookup(ctx, backend))
	switch {
	case errors.Is(err, api.ErrRefused) && expected == (journal.Position{}):
		result.Unread = err.Error() // sound as the file is, the operator does not have it open
		return nil
	case err != nil:
		return fmt.Errorf("look for losses in the journal: %w", err)
	}
	if expected == (journal.Position{}) {
		return nil
	}
	problem, err := unexpected(ctx, backend, *result, expected)
	if err != nil {
		return err
	}
	if result.OK, result.Problem = problem == "", problem; result.OK {
		result.Expected = expected
	}
	return nil
}

// unexpected says why the journal does not have the event that is expected, or "".
func unexpected(ctx context.Context, backend api.Backend, result api.VerifyResult, expected journal.Position) (string, error) {
	switch {
	case expected.Seq < result.FirstSeq:
		return fmt.Sprintf("event #%d is not in the journal any more, which begins at #%d; it cannot be compared", expected.Seq, result.FirstSeq), nil
	case expected.Seq > result.LastSeq:
		return fmt.Sprintf("event #%d is not in the journal, which ends at #%d: it is an older copy, or was created again", expected.Seq, result.LastSeq), nil
	}
	for event, err := range backend.Events(ctx, journal.Query{After: expected.Seq - 1, Before: expected.Seq + 1}, false) {
		if err != nil {
			return "", fmt.Errorf("read event #%d: %w", expected.Seq, err)
		}
		if event.Hash == expected.Hash {
			return "", nil
		}
		return fmt.Sprintf("event #%d has the hash %s, expected is %s: this is not the journal that it was, or another one", expected.Seq, event.Hash, expected.Hash), nil
	}
	return fmt.Sprintf("event #%d is not in the journal any more; it cannot be compared", expected.Seq), nil
}

func (a *app) showVerdict(result api.VerifyResult, output string) error {
	var err error
	switch {
	case output != "text":
		err = view.Value(a.stdout, result, output)
	case result.OK:
		_, err = fmt.Fprint(a.stdout, soundText(result))
	case result.NotAJournal:
		_, err = fmt.Fprintln(a.stdout, view.Clean(result.Problem))
	case result.Head != (journal.Position{}):
		_, err = fmt.Fprintf(a.stdout, "The journal is not the one that is expected: %s\n", view.Clean(result.Problem))
	default:
		_, err = fmt.Fprintf(a.stdout, "The journal is damaged: %s\n", view.Clean(result.Problem))
	}
	switch {
	case err == nil && result.NotAJournal:
		return exitError(exitNotAJournal)
	case err == nil && !result.OK:
		return exitError(exitFailed)
	}
	return err
}

func soundText(result api.VerifyResult) string {
	head := result.Head
	text := fmt.Sprintf("The journal is sound: %d events, #%d to #%d.\nHead: #%d %s%s\n", result.Events, result.FirstSeq, result.LastSeq, head.Seq, hashName, head.Hash)
	switch {
	case result.Unread != "":
		text += "Salvaged: cannot be told now: " + view.Clean(result.Unread) + "\n"
	case len(result.Losses) == 0:
		text += fmt.Sprintf("Salvaged: never, as far back as #%d\n", result.FirstSeq)
	}
	for _, loss := range result.Losses {
		text += view.Loss(loss) + "\n"
	}
	if at := result.Expected; at != (journal.Position{}) {
		return text + fmt.Sprintf("As expected: #%d has the hash that it once had, and with it all events before it.\n", at.Seq)
	}
	return text + fmt.Sprintf(unproved, fmt.Sprintf("%d:%s", head.Seq, head.Hash))
}

// verifyInChild checks a file with the given ekco binary.
func verifyInChild(self string) func(ctx context.Context, path string) (api.VerifyResult, error) {
	return func(ctx context.Context, path string) (api.VerifyResult, error) {
		report, err := rescue.VerifyIn(ctx, []string{self, journalChildCommand}, path)
		result := api.VerifyResult{OK: err == nil, Events: report.Events, FirstSeq: report.FirstSeq, LastSeq: report.LastSeq, Head: report.Head}
		switch {
		case errors.Is(err, journal.ErrDamaged):
			result.Problem, result.Head = err.Error(), journal.Position{}
		case errors.Is(err, journal.ErrNotAJournal):
			result.Problem, result.NotAJournal = err.Error(), true
		case err != nil:
			return api.VerifyResult{}, err
		}
		return result, nil
	}
}
