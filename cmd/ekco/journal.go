package main

import (
	"compress/gzip"
	"encoding/json"
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
	"github.com/replicatedhq/ekco/journal/words"
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
one event per line; "-" is standard output. A FILE that exists is not overwritten.
Nothing is removed from the journal.`,
		Example: `  ekco journal export events.gz
  ekco journal export - --node worker-2 --since 7d | zcat`,
		Args: outArgument.requireOne,
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
				wrote, err := exportTo(args[0], func(w io.Writer) error { return backend.Export(cmd.Context(), w, query) })
				if err == nil {
					_, err = fmt.Fprintln(a.stdout, view.Clean(wrote))
				}
				return err
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

// exportTo writes a file under a temporary name, gives it its final name when it is complete, and returns a summary.
func exportTo(path string, export func(io.Writer) error) (wrote string, err error) {
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("export to %s: it exists already", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return "", fmt.Errorf("export to %s: %w", path, err)
	}
	err = export(file)
	if err == nil {
		wrote, err = exportSummary(path, file)
	}
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		// Unlike a rename, a link fails if a file with this name was created in the meantime.
		err = os.Link(file.Name(), path)
	}
	return wrote, errors.Join(err, os.Remove(file.Name()), syncDirectory(filepath.Dir(path)))
}

// exportSummary returns a summary of the export in the file.
func exportSummary(path string, file io.ReadSeeker) (string, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	lines, err := gzip.NewReader(file)
	if err != nil {
		return "", fmt.Errorf("read the export again: %w", err)
	}
	var first, last journal.Event
	events, decoder := 0, json.NewDecoder(lines)
	for {
		var event journal.Event
		switch err := decoder.Decode(&event); {
		case errors.Is(err, io.EOF) && events == 0:
			return "wrote " + path + ": no event matches", nil
		case errors.Is(err, io.EOF):
			return fmt.Sprintf("wrote %s: %s, #%d of %s to #%d of %s", path, words.Count(events, "event"),
				first.Seq, words.Stamp(first.Time), last.Seq, words.Stamp(last.Time)), nil
		case err != nil:
			return "", fmt.Errorf("read the export again: %w", err)
		}
		if last = event; events == 0 {
			first = event
		}
		events++
	}
}

// syncDirectory makes new names in a directory durable, if the file system supports that.
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
