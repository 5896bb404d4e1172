package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal/words"
)

// app has everything that commands use outside the process, so that tests can replace it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	unread         *unreadGuard
	// These fields report whether stdin, stdout and stderr are terminals.
	askable, stdoutTerminal, stderrTerminal bool
	env                                     func(string) (string, bool)
	configDirs                              []string
	now                                     func() time.Time
	words                                   *words.Vocabulary
	// deferredAfter is how long a purge must be without an event before the command reports that the rest may take
	// days.
	deferredAfter time.Duration
	// holderTimeout is how long a process that has the journal open may take to listen on its socket, or to close the
	// journal.
	holderTimeout time.Duration
	// kubeletMinActiveTime is how long a restarted kubelet must run before the command accepts it.
	kubeletMinActiveTime time.Duration

	// dial connects to the operator. If no process listens on the socket, it tries the spare socket.
	dial func(ctx context.Context, socket, spare string) (operator, error)
	// work starts a ring for one purge, if no operator runs.
	work func(ctx context.Context, cfg config.Config, options ringOptions, log *slog.Logger) (api.Backend, <-chan struct{}, func() error, error)
}

// operator is a backend with a connection to close.
type operator interface {
	api.Backend
	Close()
}

func newApp() *app {
	unread := &unreadGuard{end: endUnread}
	return &app{
		stdin: os.Stdin, stdout: &guardedOutput{os.Stdout, unreadTimeout, unread}, stderr: &guardedOutput{os.Stderr, unreadTimeout, unread}, unread: unread,
		askable:        term.IsTerminal(int(os.Stdin.Fd())),
		stdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		stderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		env:            os.LookupEnv,
		configDirs:     config.SearchDirs(),
		now:            time.Now,
		words:          capabilities(cluster{}).Vocabulary(),

		deferredAfter:        10 * time.Second,
		holderTimeout:        15 * time.Second,
		kubeletMinActiveTime: 3 * time.Second,
		dial:                 dialOperator,
		work:                 startRing,
	}
}

// useColor reports whether to print colours on standard output.
func (a *app) useColor() bool {
	if text, set := a.env("NO_COLOR"); set && text != "" {
		return false
	}
	if text, _ := a.env("TERM"); text == "dumb" {
		return false
	}
	return a.stdoutTerminal
}

// wrappedStdout returns standard output. It wraps lines at $COLUMNS characters, or at the width of the terminal, unless
// the format is JSON or YAML.
func (a *app) wrappedStdout(format string) io.Writer {
	if format == "json" || format == "yaml" {
		return a.stdout
	}
	text, _ := a.env("COLUMNS")
	width, err := strconv.Atoi(text)
	if err != nil && a.stdoutTerminal {
		width, _, _ = term.GetSize(int(os.Stdout.Fd())) // 0, no limit, if it is unknown
	}
	return view.Wrap(a.stdout, width)
}

// loadConfig reads the whole configuration and creates the logger. It warns of unknown keys.
func (a *app) loadConfig(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	cfg, err := a.settings(cmd)
	if err != nil {
		return config.Config{}, nil, err
	}
	log, err := a.logger(cfg.LogLevel)
	if err != nil {
		return config.Config{}, nil, err
	}
	if len(cfg.UnknownKeys) > 0 {
		log.Warn("the configuration file has keys that this EKCO does not know; they are ignored", "file", cfg.File, "keys", cfg.UnknownKeys)
	}
	return cfg, log, nil
}

// settings reads the given keys of the configuration, or all keys if none is given.
func (a *app) settings(cmd *cobra.Command, only ...string) (config.Config, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return config.Config{}, fmt.Errorf("read flag --config: %w", err)
	}
	return config.Load(config.Sources{File: file, Dirs: a.configDirs, Env: a.env, Flags: cmd.Flags(), Only: only})
}
