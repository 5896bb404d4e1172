package primaries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/replicatedhq/ekco/internal/kube"
)

func (s *Store) ref() kube.Ref {
	return kube.Ref{Version: "v1", Resource: "configmaps", Namespace: s.options.Namespace, Name: configMap}
}

// again returns the reason to check all certificates early, or "": another program has deleted the ConfigMap or the
// time in it. If EKCO may not read the ConfigMap, again returns "".
func (s *Store) again(ctx context.Context) (string, error) {
	at, err := s.attempted(ctx)
	switch sentinel := kube.Sentinel(err); {
	case errors.Is(sentinel, kube.ErrForbidden):
		return "", nil
	case errors.Is(sentinel, kube.ErrNotFound):
		return fmt.Sprintf("ConfigMap %s/%s does not exist", s.options.Namespace, configMap), nil
	case err != nil:
		return "", err
	case at.IsZero():
		return fmt.Sprintf("ConfigMap %s/%s has no time in %s", s.options.Namespace, configMap, attemptedKey), nil
	}
	return "", nil
}

// attempted returns the time in the ConfigMap, or zero if the ConfigMap has no valid time.
func (s *Store) attempted(ctx context.Context) (time.Time, error) {
	content, err := s.options.Objects.ReadObject(ctx, s.ref())
	if err != nil {
		return time.Time{}, err
	}
	var read corev1.ConfigMap
	_ = json.Unmarshal(content, &read)                         // an unexpected ConfigMap has no time
	at, _ := time.Parse(time.RFC3339, read.Data[attemptedKey]) // an invalid time is zero
	return at, nil
}

// Attempted reports whether the ConfigMap records a check at or after the time since.
func (s *Store) Attempted(ctx context.Context, since time.Time) (bool, error) {
	at, err := s.attempted(ctx)
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return false, nil
	}
	return err == nil && !at.Before(since), err
}

// Note writes the time of a check to the ConfigMap.
func (s *Store) Note(ctx context.Context, at time.Time) error {
	stamp := at.UTC().Format(time.RFC3339)
	content, err := s.options.Objects.ReadObject(ctx, s.ref())
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		object, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": s.options.Namespace, "name": configMap},
			"data": map[string]string{attemptedKey: stamp},
		})
		if err == nil {
			_, err = s.options.Objects.CreateObject(ctx, s.ref(), object)
		}
		return err
	}
	if err != nil {
		return err
	}
	changed, err := kube.Edit(s.ref(), content, func(object map[string]any) error {
		return unstructured.SetNestedField(object, stamp, "data", attemptedKey)
	})
	if err == nil {
		_, err = s.options.Objects.ReplaceObject(ctx, s.ref(), changed)
	}
	return err
}
