package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/journal"
)

func newJournalImportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Read back the events of an export",
		Long: `Reads an export that this journal's retention made, so that history shows its
events again; "-" is standard input.`,
		Example: `  ekco journal import journal-1-4096.ndjson.gz`,
		Args:    inArgument.requireOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, in := "standard input", a.stdin
			from := name
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return fmt.Errorf("import: %w", err)
				}
				defer func() { _ = file.Close() }()
				name, in = args[0], file
				if from, err = filepath.Abs(name); err != nil {
					return fmt.Errorf("import %s: %w", name, err)
				}
			}
			imported, err := a.importExport(cmd, from, in)
			if err != nil {
				return fmt.Errorf("import %s: %w", name, err)
			}
			said := fmt.Sprintf("imported %d events, #%d to #%d", imported.Events, imported.FirstSeq, imported.LastSeq)
			if imported.Events == 0 {
				said = "nothing imported: the journal has every event of the export"
			}
			_, err = fmt.Fprintln(a.stdout, said)
			return err
		},
	}
}

// importExport checks the export before the import: the whole export if it is a file, and only the first line if it is
// a stream.
func (a *app) importExport(cmd *cobra.Command, from string, in io.Reader) (imported journal.JournalImported, err error) {
	if file, ok := in.(*os.File); ok && file != os.Stdin {
		err = errors.Join(checkExport(cmd.Context(), file), rewind(file))
	} else {
		buffered := bufio.NewReader(in)
		in, err = buffered, checkStart(buffered)
	}
	if err != nil {
		return imported, fmt.Errorf("%w; nothing was imported, and the journal is unchanged", err)
	}
	err = a.withConnection(cmd.Context(), cmd, func(backend *connection) (err error) {
		imported, err = backend.Import(cmd.Context(), from, in)
		return err
	})
	return imported, err
}

func rewind(file io.Seeker) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

func checkStart(stream *bufio.Reader) error {
	start, err := stream.Peek(1)
	if errors.Is(err, io.EOF) || isGzip(stream) || err == nil && start[0] == '{' {
		return nil
	}
	return errors.Join(err, notAnEventError(1))
}

func notAnEventError(line int) error {
	return fmt.Errorf("line %d is not an event of a journal, so this is not an export, or it was changed", line)
}

func isGzip(input *bufio.Reader) bool {
	magic, err := input.Peek(2)
	return err == nil && magic[0] == 0x1f && magic[1] == 0x8b
}

// checkExport reads the whole export, and returns an error for the first line that is not an event.
func checkExport(ctx context.Context, export io.Reader) error {
	input := bufio.NewReader(export)
	if isGzip(input) {
		unzipped, err := gzip.NewReader(input)
		if err != nil {
			return fmt.Errorf("it begins like a compressed file and is not one: %w", err)
		}
		input = bufio.NewReader(unzipped)
	}
	for n := 1; ; n++ {
		line, err := input.ReadBytes('\n')
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("it cannot be read after line %d: %w", n-1, err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		event, err := journal.ParseRecord(line)
		if err != nil || event.Seq == 0 || !bytes.Equal(event.Record(), line) {
			return notAnEventError(n)
		}
	}
}
