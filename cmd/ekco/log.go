package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/replicatedhq/ekco/internal/config"
)

// logger returns a logger that writes to standard error: text on a terminal, JSON otherwise.
func (a *app) logger(level string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("read log_level: %w", err)
	}
	options := &slog.HandlerOptions{Level: least, ReplaceAttr: fourLevels}
	if a.stderrTerminal {
		return slog.New(slog.NewTextHandler(a.stderr, options)), nil
	}
	return slog.New(slog.NewJSONHandler(a.stderr, options)), nil
}

// fourLevels rounds a level down to DEBUG, INFO, WARN or ERROR, because the Kubernetes libraries use more levels, such
// as DEBUG+2.
func fourLevels(groups []string, attr slog.Attr) slog.Attr {
	level, ok := attr.Value.Any().(slog.Level)
	if !ok || len(groups) > 0 || attr.Key != slog.LevelKey {
		return attr
	}
	for _, named := range []slog.Level{slog.LevelError, slog.LevelWarn, slog.LevelInfo} {
		if level >= named {
			return slog.Any(slog.LevelKey, named)
		}
	}
	return slog.Any(slog.LevelKey, slog.LevelDebug)
}

// quieter returns a logger that drops the ring's messages of level info, so that the user sees the steps.
func quieter(log *slog.Logger, cfg config.Config) *slog.Logger {
	if cfg.LogLevel != "info" {
		return log
	}
	return slog.New(atLeast{log.Handler(), slog.LevelWarn})
}

// atLeast is a handler that drops records below a level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level && h.Handler.Enabled(ctx, level)
}

func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
