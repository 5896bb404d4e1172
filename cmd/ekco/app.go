package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal/words"
)

// app is what the commands need of the world around them.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// unread looks after what the two write.
	unread *unread
	// Whether the three are terminals.
	askable, stdoutTerminal, stderrTerminal bool
	env                                     func(string) (string, bool)
	configDirs                              []string
	now                                     func() time.Time
	// words are the words for events and actions.
	words *words.Vocabulary
	// deferredPatience is how long a purge must have been quiet before it counts
	// as one that waits for days.
	deferredPatience time.Duration
	// holderPatience is how long a process that holds the journal may take to
	// listen on its socket, or to let the journal go.
	holderPatience time.Duration
	// kubeletSteady is how long a kubelet must run that was restarted.
	kubeletSteady time.Duration

	// dial reaches the operator that serves a socket.
	dial func(ctx context.Context, socket string) (operator, error)
	// work starts a ring for one purge, where no operator runs.
	work func(ctx context.Context, cfg config.Config, options ringOptions, log *slog.Logger) (api.Backend, <-chan struct{}, func() error, error)
}

// operator is a backend that is reached, and let go.
type operator interface {
	api.Backend
	Close()
}

func newApp() *app {
	unread := &unread{end: endUnread}
	return &app{
		stdin: os.Stdin, stdout: &takenOutput{os.Stdout, unreadPatience, unread}, stderr: &takenOutput{os.Stderr, unreadPatience, unread}, unread: unread,
		askable:        term.IsTerminal(int(os.Stdin.Fd())),
		stdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		stderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		env:            os.LookupEnv,
		configDirs:     config.SearchDirs(),
		now:            time.Now,
		words:          capabilities(cluster{}).Vocabulary(),

		deferredPatience: 10 * time.Second,
		holderPatience:   15 * time.Second,
		kubeletSteady:    3 * time.Second,
		dial: func(ctx context.Context, socket string) (operator, error) {
			client, err := api.Dial(ctx, socket)
			if err != nil {
				return nil, err
			}
			return client, nil
		},
		work: startRing,
	}
}

// color reports whether colours are wanted on standard output.
func (a *app) color() bool {
	if text, set := a.env("NO_COLOR"); set && text != "" {
		return false
	}
	if text, _ := a.env("TERM"); text == "dumb" {
		return false
	}
	return a.stdoutTerminal
}

// load reads the whole configuration and makes the logger it asks for. It warns
// of keys that are not known.
func (a *app) load(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
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

// settings reads the named keys of the configuration, or all of them.
func (a *app) settings(cmd *cobra.Command, only ...string) (config.Config, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return config.Config{}, fmt.Errorf("read flag --config: %w", err)
	}
	return config.Load(config.Sources{File: file, Dirs: a.configDirs, Env: a.env, Flags: cmd.Flags(), Only: only})
}
