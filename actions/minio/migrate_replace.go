package minio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// replacePod deletes the pod to which clients are connected, and waits until another pod of the same controller
// answers.
func (a *attempt) replacePod(ctx context.Context) (minio.SinglePod, error) {
	for lacks := ""; ; {
		pod, missing, err := a.lookForSuccessor(ctx)
		switch {
		case err == nil && missing == "":
			return pod, nil
		case errors.As(err, new(otherSourceError)), errors.As(err, new(crowdedError)):
			return minio.SinglePod{}, err // a retry would find the same error, and clients wait
		case err == nil:
			lacks = missing
		case ctx.Err() == nil || lacks == "": // an interrupted check proves nothing
			lacks = err.Error()
		}
		select {
		case <-ctx.Done():
			return minio.SinglePod{}, fmt.Errorf("wait for the next pod of standalone MinIO: %s: %w", lacks, ctx.Err())
		case <-time.After(podInterval):
		}
	}
}

// crowdedError has the text of [minio.Single.Crowded].
type crowdedError string

func (e crowdedError) Error() string { return string(e) }

// lookForSuccessor calls [attempt.successor] with the pods that exist now.
func (a *attempt) lookForSuccessor(ctx context.Context) (minio.SinglePod, string, error) {
	single, err := a.api.Single(ctx)
	if err != nil {
		return minio.SinglePod{}, "", err
	}
	if crowded := single.Crowded(); crowded != "" {
		return minio.SinglePod{}, "", crowdedError(crowded)
	}
	return a.successor(ctx, single)
}

// successor returns the only pod if it is new and answers, or else the missing condition. It deletes the pods that
// served, and waits until all of them are gone.
func (a *attempt) successor(ctx context.Context, single minio.Single) (pod minio.SinglePod, lacks string, err error) {
	for _, one := range single.Own() {
		if !slices.Contains(a.state.Pods, one.UID) {
			continue
		}
		if lacks = "pod " + one.Name + " has not ended yet"; one.State != journal.MinioPodEnds {
			err = errors.Join(err, kube.IgnoreNotFound(a.api.EndSinglePod(ctx, one.Name, one.UID, endGrace)))
		}
	}
	if lacks != "" {
		return pod, lacks, err
	}
	switch own := single.Own(); {
	case len(own) == 0:
		return pod, "there is no other pod yet", nil
	case len(own) > 1:
		return pod, fmt.Sprintf("there are %d other pods, want one", len(own)), nil
	case own[0].Controller != a.state.Controller:
		return pod, "pod " + own[0].Name + " belongs to another controller", nil
	default:
		pod, lacks, err = a.readPod(ctx, own[0])
	}
	if err != nil || lacks != "" {
		return pod, lacks, err
	}
	return pod, "", a.requireAnswers(ctx, pod)
}

// readPod reads the pod with this UID again: if its address changed, another pod may have the old address.
func (a *attempt) readPod(ctx context.Context, of minio.SinglePod) (pod minio.SinglePod, lacks string, err error) {
	pod, exists, err := a.api.SinglePod(ctx, of.Name, of.UID)
	switch {
	case err != nil:
		return pod, "", err
	case !exists:
		return pod, "pod " + of.Name + " is gone", nil
	case !pod.Serves():
		return pod, fmt.Sprintf("pod %s is not ready: %s", of.Name, cmp.Or(pod.Unready, "it has no address")), nil
	}
	return pod, "", nil
}

// requireStillServes returns an error if the compared pod no longer has its address.
func (a *attempt) requireStillServes(ctx context.Context, compared minio.SinglePod) error {
	pod, lacks, err := a.readPod(ctx, compared)
	if err == nil && lacks == "" && pod.Address != compared.Address {
		lacks = fmt.Sprintf("pod %s has address %s now", pod.Name, pod.Address)
	}
	if lacks != "" {
		return fmt.Errorf("EKCO compared the pod of standalone MinIO at %s, which no longer serves: %s", compared.Address, lacks)
	}
	return err
}

// requireAnswers returns nil once a pod answers all kinds of requests. A pod serves objects before it has loaded users
// and policies.
func (a *attempt) requireAnswers(ctx context.Context, pod minio.SinglePod) error {
	both, err := a.openPod(ctx, pod, a.step.Action)
	if err != nil {
		return err
	}
	defer both.close()
	if _, err := both.source.Buckets(ctx); err != nil {
		return err
	}
	_, err = both.source.ExportIAM(ctx)
	return err
}
