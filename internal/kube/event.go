package kube

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/journal"
)

// maxNote is the API's limit for an event's message, in bytes.
const maxNote = 1024

// HasEvents reports whether RecordEvent writes Events about the subject. There are no Events about the cluster or EKCO
// itself.
func HasEvents(about journal.Subject) bool { return about.Kind != "" && about.Name != "" }

// RecordEvent writes a Kubernetes Event about an object. It writes the Event into the namespace in the object's name
// ("namespace/name"), or else into namespace default, where kubectl describe finds Events of a Node. It returns an
// error for a subject that is not an object. ErrForbidden is usual, because kURL's RBAC does not grant events.
func (c *Client) RecordEvent(ctx context.Context, about journal.Subject, note Note) error {
	if !HasEvents(about) {
		return fmt.Errorf("create event about %q: only objects have events", about.Kind)
	}
	target := corev1.ObjectReference{APIVersion: note.APIVersion, Kind: about.Kind, Name: about.Name, UID: types.UID(about.UID)}
	namespace := metav1.NamespaceDefault
	if in, name, namespaced := strings.Cut(about.Name, "/"); namespaced {
		namespace, target.Namespace, target.Name = in, in, name
	}
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err := c.core.Post().Namespace(namespace).Resource("events").
		Body(eventOf(target, namespace, note)).Do(ctx).Error()
	return call{"create", "events", "about " + about.Kind + " " + about.Name}.fail(err)
}

func eventOf(target corev1.ObjectReference, namespace string, note Note) *corev1.Event {
	now := metav1.Now()
	kind := corev1.EventTypeNormal
	if note.Warning {
		kind = corev1.EventTypeWarning
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: target.Name + ".", Namespace: namespace},
		InvolvedObject: target,
		Reason:         note.Reason,
		Message:        shorten(note.Message, maxNote),
		Type:           kind,
		Source:         corev1.EventSource{Component: "ekco"},
		FirstTimestamp: now,
		LastTimestamp:  now,
		Count:          1,

		ReportingController: "ekco",
	}
}

// shorten cuts text to at most limit bytes, between characters.
func shorten(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
