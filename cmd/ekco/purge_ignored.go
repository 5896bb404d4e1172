package main

import (
	"context"
	"slices"

	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
)

// settingsOfWorker lists settings that a purge uses but a request does not contain. The process that does the work uses
// its own values.
var settingsOfWorker = []string{"certificates_dir", "kubeconfig"}

// warnOfIgnored warns of this command's settings that have no effect, because a process with other settings does the
// work.
func (p *purger) warnOfIgnored(ctx context.Context, cfg config.Config) {
	if p.doesWorkItself {
		return
	}
	var theirs map[string]string
	for _, key := range settingsOfWorker {
		if !slices.Contains(cfg.Explicit, key) || key == "kubeconfig" && !p.flags.kubeconfig {
			continue // shells often set KUBECONFIG for kubectl
		}
		if theirs == nil {
			theirs = p.workerSettings(ctx)
		}
		own := cfg.Redacted()[key]
		if value, known := theirs[key]; known && value != own {
			p.warn("warning: %s=%s has no effect: the operator does the work, with its own %s=%s", key, own, key, value)
		}
	}
}

// workerSettings returns the settings of the process that does the work, or nil if they are unknown.
func (p *purger) workerSettings(ctx context.Context) map[string]string {
	started := journal.Query{Types: []journal.Type{journal.TypeOperatorStarted}, Reverse: true, Limit: 1}
	for event, err := range p.backend.Events(ctx, started, false) {
		if err != nil {
			break
		}
		if payload, err := event.Decode(); err == nil {
			if start, ok := payload.(*journal.OperatorStarted); ok {
				return start.Settings
			}
		}
	}
	return map[string]string{}
}
