package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

func newJournalCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Check, measure, export, import or accept the journal",
		Example: `  ekco journal verify
  ekco journal export events.gz --since 24h`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newJournalVerifyCommand(a), newJournalStatCommand(a), newJournalExportCommand(a),
		newJournalImportCommand(a), newJournalAcceptCommand(a))
	return cmd
}

func newJournalVerifyCommand(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check every event and the chain that holds them together",
		Long: `Checks the whole journal: that every record is as it was written and that none is
missing. While an operator runs it checks the journal in use, otherwise the file,
in a process of its own. The exit code is 1 if anything is wrong, and 3 if the
file is not a journal of EKCO at all.`,
		Example: `  ekco journal verify
  ekco journal verify --journal ./journal.db -o json`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withWarned(cmd.Context(), cmd, func(backend *connection) error {
				result, err := backend.Verify(cmd.Context())
				if err != nil {
					return err
				}
				return a.showVerdict(result, output)
			})
		},
	}
	outputFlag(cmd, &output, "text", "text", "json", "yaml")
	return cmd
}

func (a *app) showVerdict(result api.VerifyResult, output string) error {
	var err error
	switch {
	case output != "text":
		err = view.Value(a.stdout, result, output)
	case result.OK:
		_, err = fmt.Fprintf(a.stdout, "The journal is sound: %d events, #%d to #%d.\n", result.Events, result.FirstSeq, result.LastSeq)
	case result.NotAJournal:
		_, err = fmt.Fprintln(a.stdout, view.Clean(result.Problem))
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

// verifyInChild checks a file with the given ekco binary.
func verifyInChild(self string) func(ctx context.Context, path string) (api.VerifyResult, error) {
	return func(ctx context.Context, path string) (api.VerifyResult, error) {
		report, err := rescue.VerifyIn(ctx, []string{self, journalChildCommand}, path)
		result := api.VerifyResult{OK: err == nil, Events: report.Events, FirstSeq: report.FirstSeq, LastSeq: report.LastSeq}
		switch {
		case errors.Is(err, journal.ErrDamaged):
			result.Problem = err.Error()
		case errors.Is(err, journal.ErrNotAJournal):
			result.Problem, result.NotAJournal = err.Error(), true
		case err != nil:
			return api.VerifyResult{}, err
		}
		return result, nil
	}
}

func newJournalStatCommand(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "stat",
		Short: "Show the journal's size, range and identity",
		Example: `  ekco journal stat
  ekco journal stat -o json`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStatus(cmd, func(status api.Status) error {
				if output != "text" {
					return view.Value(a.stdout, status.Journal, output)
				}
				return view.JournalStat(a.stdout, status.Journal, status.Now)
			})
		},
	}
	outputFlag(cmd, &output, "text", "text", "json", "yaml")
	return cmd
}

func newJournalExportCommand(a *app) *cobra.Command {
	var flags historyFlags
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write events to a compressed file",
		Long: `Writes the events that match, all of them by default, to FILE as gzip'ed NDJSON,
one event a line; "-" is standard output. A FILE that exists is not overwritten.
Nothing is removed from the journal.`,
		Example: `  ekco journal export events.gz
  ekco journal export - --node worker-2 --since 7d | zcat`,
		Args: outArgument.required,
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := flags.query(a.now())
			if err != nil {
				return err
			}
			if flags.defaultWindow() {
				query.Since = time.Time{}
			}
			return a.withWarned(cmd.Context(), cmd, func(backend *connection) error {
				if args[0] == "-" {
					return backend.Export(cmd.Context(), a.stdout, query)
				}
				return exportTo(args[0], func(w io.Writer) error { return backend.Export(cmd.Context(), w, query) })
			})
		},
	}
	flags.output = "table"
	cmd.Flags().StringVar(&flags.node, "node", "", "only what concerns this node")
	cmd.Flags().StringVar(&flags.action, "action", "", "only this action")
	cmd.Flags().StringVar(&flags.since, "since", "", "from this time on")
	cmd.Flags().StringVar(&flags.until, "until", "", "before this time")
	complete(cmd, "node", a.nodeNames)
	complete(cmd, "action", a.actionsOfHistory)
	return cmd
}

// exportTo writes a file that is whole when it has its name.
func exportTo(path string, export func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("export to %s: it exists already", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return fmt.Errorf("export to %s: %w", path, err)
	}
	err = export(file)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		// Unlike a rename, a link never replaces what has come to be there.
		err = os.Link(file.Name(), path)
	}
	return errors.Join(err, os.Remove(file.Name()), syncDirectory(filepath.Dir(path)))
}

// syncDirectory makes the names in a directory durable, where the file system can.
func syncDirectory(name string) error {
	directory, err := os.Open(name)
	if err != nil {
		return err
	}
	err = directory.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, directory.Close())
}

func newJournalAcceptCommand(a *app) *cobra.Command {
	var request api.AcceptRequest
	cmd := &cobra.Command{
		Use:   "accept",
		Short: "End safe mode after the journal was damaged, or lost its newest events",
		Long: `Ends safe mode. EKCO is in it after it found the journal damaged, set the file
aside and kept what was readable; or after it found that the journal lacks events
which its mirror in the cluster knows of, because an older copy was put back. It
then observes and explains, and does nothing else. Look at "ekco status" and
"ekco history" before you accept: what was lost may have been the record of work
that is half done.`,
		Example: `  ekco journal accept --reason "compared with the cluster, nothing is half done"`,
		Args:    noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.tell(cmd, func(backend *connection) (string, error) {
				return "accepted; safe mode has ended", backend.Accept(cmd.Context(), request)
			})
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the record")
	return cmd
}
