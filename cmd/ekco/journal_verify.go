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

const unprovedHelp = `A writer of the file could have replaced all of it, with another valid chain. To detect
that, keep the head in another place and compare: ekco journal verify --expect %s
`

// hashName is the prefix of a hash in text form.
const hashName = "sha256:"

func newJournalVerifyCommand(a *app) *cobra.Command {
	var output, expect string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check every event and the chain of hashes",
		Long: `Checks the whole journal: that no record was changed and none is missing. While an
operator runs it checks the journal in use, otherwise the file, in a separate process.
It prints the head (the number and the hash of the last event, which depends on all
events before it), and the events and the period of each loss of events.
With --expect it also checks that an event still has the given hash. The exit code is
1 if anything is wrong, and 3 if the file is not a journal of EKCO.`,
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
					if err := auditEvents(cmd.Context(), backend, &result, expected); err != nil {
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

// readPosition parses SEQ:HASH, also in the form that "verify" prints. It returns the zero Position for an empty text.
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

// auditEvents reads the events of an intact journal. It adds the losses to the result, and compares the expected event.
func auditEvents(ctx context.Context, backend api.Backend, result *api.VerifyResult, expected journal.Position) error {
	var err error
	result.Losses, err = losses(ctx, backend, time.Time{}, lookup(ctx, backend))
	switch {
	case errors.Is(err, api.ErrRefused) && expected == (journal.Position{}):
		result.Unread = err.Error() // the file is intact, but the operator does not have it open
		return nil
	case err != nil:
		return fmt.Errorf("look for losses in the journal: %w", err)
	}
	if expected == (journal.Position{}) {
		return nil
	}
	problem, err := mismatchReason(ctx, backend, *result, expected)
	if err != nil {
		return err
	}
	if result.OK, result.Problem = problem == "", problem; result.OK {
		result.Expected = expected
	}
	return nil
}

// mismatchReason returns the reason if the journal does not have the expected event, or "".
func mismatchReason(ctx context.Context, backend api.Backend, result api.VerifyResult, expected journal.Position) (string, error) {
	switch {
	case expected.Seq < result.FirstSeq:
		return fmt.Sprintf("event #%d is no longer in the journal, which begins at #%d; it cannot be compared", expected.Seq, result.FirstSeq), nil
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
		return fmt.Sprintf("event #%d has the hash %s, expected %s: the journal was changed, or this is another one", expected.Seq, event.Hash, expected.Hash), nil
	}
	return fmt.Sprintf("event #%d is no longer in the journal; it cannot be compared", expected.Seq), nil
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
		_, err = fmt.Fprintf(a.stdout, "The journal is not the expected one: %s\n", view.Clean(result.Problem))
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
	text := fmt.Sprintf("The journal is intact: %d events, #%d to #%d.\nHead: #%d %s%s\n", result.Events, result.FirstSeq, result.LastSeq, head.Seq, hashName, head.Hash)
	switch {
	case result.Unread != "":
		text += "Salvaged: unknown: " + view.Clean(result.Unread) + "\n"
	case len(result.Losses) == 0:
		text += fmt.Sprintf("Salvaged: never, as far back as #%d\n", result.FirstSeq)
	}
	for _, loss := range result.Losses {
		text += view.Loss(loss) + "\n"
	}
	if at := result.Expected; at != (journal.Position{}) {
		return text + fmt.Sprintf("As expected: #%d and all events before it are unchanged.\n", at.Seq)
	}
	return text + fmt.Sprintf(unprovedHelp, fmt.Sprintf("%d:%s", head.Seq, head.Hash))
}

// verifyInChild returns a function that checks a file in another process of the given ekco binary.
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
