package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal/words"
)

// operatorDeployment is the Deployment of EKCO's operator that kURL installs.
var operatorDeployment = kube.Ref{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "kurl", Name: "ekc-operator"}

// checkElsewhere returns an error if an operator with another journal may run: with two journals, EKCO would do the
// same work twice, and no history would have all of it. own is the id of this journal, "" if its file does not exist.
func checkElsewhere(ctx context.Context, cfg config.Config, own string, log *slog.Logger) error {
	reached, err := newClients(cfg, kube.Terms{ReadOnly: true}, api.NewMetrics(), log)
	if err != nil {
		return err
	}
	content, err := mirror.New(reached.kube, own, log).Read(ctx)
	switch {
	case errors.Is(err, kube.ErrNotFound): // no EKCO has run here, or not for long
	case err != nil && !errors.Is(err, mirror.ErrOtherFormat) && !errors.Is(err, mirror.ErrIncomplete):
		return fmt.Errorf("find out whether an operator runs: %w; if none runs, repeat the command with --without-operator", err)
	case own == "" || content.JournalID != own:
		return fmt.Errorf("the mirror in the cluster is not of journal %s, but of another one, written at %s, so an operator may be running with that other journal: "+
			"give the path of that journal with --journal or EKCO_JOURNAL, or run the command in its pod (kubectl -n kurl exec deploy/ekc-operator -- ekco …); "+
			"if no operator runs, repeat the command with --without-operator", cfg.Journal, words.Stamp(content.WrittenAt))
	}
	deployment, err := kube.Get[appsv1.Deployment](ctx, reached.objects, operatorDeployment)
	if own == "" && err == nil && deployment.Status.ReadyReplicas > 0 {
		return fmt.Errorf("the operator runs in a pod, and there is no journal at %s: run the command in the pod "+
			"(kubectl -n kurl exec deploy/ekc-operator -- ekco …), or repeat it with --without-operator", cfg.Journal)
	}
	return nil
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
