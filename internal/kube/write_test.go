package kube

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/replicatedhq/ekco/journal"
)

const (
	mirrorsPath = "/api/v1/namespaces/kurl/configmaps"
	mirrorPath  = mirrorsPath + "/ekco-journal"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

func TestTheMirrorIsCreatedThenReplaced(t *testing.T) {
	s := newServer(t, map[string]any{
		"POST " + mirrorsPath: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}},
		"PUT " + mirrorPath:   &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}},
		"GET " + mirrorPath: &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}, Data: map[string]string{"actions.json": "[1]"},
		},
	})
	c := s.client(Options{})
	version, err := c.WriteMirror(t.Context(), []byte("[]"), "")
	if err != nil || version != "7" {
		t.Fatalf("create: version %q, %v", version, err)
	}
	version, err = c.WriteMirror(t.Context(), []byte("[1]"), version)
	if err != nil || version != "8" {
		t.Fatalf("replace: version %q, %v", version, err)
	}
	sent := s.last()
	mirror := sent.body.(*corev1.ConfigMap)
	if mirror.ResourceVersion != "7" || mirror.Data["actions.json"] != "[1]" || mirror.Name != "ekco-journal" {
		t.Errorf("sent %+v", mirror)
	}
	if sent.contentType != "application/vnd.kubernetes.protobuf" {
		t.Errorf("content type is %q", sent.contentType)
	}
	content, version, err := c.ReadMirror(t.Context())
	if err != nil || string(content) != "[1]" || version != "8" {
		t.Errorf("read %q, version %q, %v", content, version, err)
	}
}

func TestAMirrorThatIsNotOfTheVersionIsAConflict(t *testing.T) {
	for name, test := range map[string]struct {
		version string
		line    string
		answer  any
		want    error
	}{
		"it exists already": {"", "POST " + mirrorsPath, apierrors.NewAlreadyExists(configMaps, MirrorName), ErrConflict},
		"it was changed":    {"7", "PUT " + mirrorPath, apierrors.NewConflict(configMaps, MirrorName, errors.New("changed")), ErrConflict},
		"it was deleted":    {"7", "PUT " + mirrorPath, apierrors.NewNotFound(configMaps, MirrorName), ErrConflict},
		"it may not be":     {"", "POST " + mirrorsPath, apierrors.NewForbidden(configMaps, MirrorName, nil), ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, map[string]any{test.line: test.answer})
			_, err := s.client(Options{}).WriteMirror(t.Context(), []byte("[]"), test.version)
			if !errors.Is(Sentinel(err), test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
}

func TestThereIsNoMirrorInAFreshCluster(t *testing.T) {
	s := newServer(t, map[string]any{
		"GET /api/v1/namespaces/other/configmaps/ekco-journal": apierrors.NewNotFound(configMaps, MirrorName),
	})
	if _, _, err := s.client(Options{Namespace: "other"}).ReadMirror(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("error is %v, want ErrNotFound", err)
	}
}

func TestMirrorPartsAreWrittenListedAndDeleted(t *testing.T) {
	const part = mirrorsPath + "/ekco-journal-1"
	s := newServer(t, map[string]any{
		"POST " + mirrorsPath: apierrors.NewAlreadyExists(configMaps, "ekco-journal-1"),
		"PUT " + part:         &corev1.ConfigMap{},
		"GET " + mirrorsPath: &corev1.ConfigMapList{Items: []corev1.ConfigMap{
			{ObjectMeta: metav1.ObjectMeta{Name: "ekco-journal-1"}, Data: map[string]string{"actions.json": "[1]"}},
		}},
		"DELETE " + part: apierrors.NewNotFound(configMaps, "ekco-journal-1"),
	})
	c := s.client(Options{})
	if err := c.WriteMirrorPart(t.Context(), "ekco-journal-1", []byte("[1]")); err != nil {
		t.Fatal(err)
	}
	if sent := s.last().body.(*corev1.ConfigMap); sent.Labels["ekco.kurl.sh/mirror-part"] == "" || sent.Data["actions.json"] != "[1]" {
		t.Errorf("sent %+v", sent)
	}
	parts, err := c.MirrorParts(t.Context())
	if err != nil || len(parts) != 1 || string(parts["ekco-journal-1"]) != "[1]" {
		t.Errorf("listed %q, %v", parts, err)
	}
	if err := c.DeleteMirrorPart(t.Context(), "ekco-journal-1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a part that is gone: %v", err)
	}
}

func TestAnEventIsWrittenWhereKubectlLooksForIt(t *testing.T) {
	s := newServer(t, map[string]any{
		"POST /api/v1/namespaces/default/events": &corev1.Event{},
		"POST /api/v1/namespaces/x/events":       &corev1.Event{},
	})
	c := s.client(Options{})
	note := Note{Reason: "NodeCleared", Message: strings.Repeat("ä", 600), Warning: true, APIVersion: "v1"}
	if err := c.RecordEvent(t.Context(), journal.NodeSubject("a", "u"), note); err != nil {
		t.Fatal(err)
	}
	event := s.last().body.(*corev1.Event)
	about := event.InvolvedObject
	if about.Kind != "Node" || about.Name != "a" || about.UID != "u" || about.APIVersion != "v1" {
		t.Errorf("the event is about %+v", about)
	}
	if event.Type != "Warning" || event.Reason != "NodeCleared" || event.Source.Component != "ekco" || event.Count != 1 {
		t.Errorf("the event is %+v", event)
	}
	if len(event.Message) > 1024 || !utf8.ValidString(event.Message) || !strings.HasSuffix(event.Message, "ä…") {
		t.Errorf("the message has %d bytes and ends with %q", len(event.Message), event.Message[1000:])
	}
	if err := c.RecordEvent(t.Context(), journal.PodSubject("x", "p", "u", "a"), Note{Message: "short"}); err != nil {
		t.Fatal(err)
	}
	event = s.last().body.(*corev1.Event)
	if event.InvolvedObject.Name != "p" || event.InvolvedObject.Namespace != "x" || event.Type != "Normal" || event.Message != "short" {
		t.Errorf("the event is %+v", event)
	}
	if err := c.RecordEvent(t.Context(), journal.Subject{Kind: "Lamp", Name: "desk", UID: "l"}, Note{Message: "short"}); err != nil {
		t.Fatal(err)
	}
	event = s.last().body.(*corev1.Event)
	if about := event.InvolvedObject; about.Kind != "Lamp" || about.Name != "desk" || about.APIVersion != "" || event.Namespace != "default" {
		t.Errorf("the event is %+v", event)
	}
	if err := c.RecordEvent(t.Context(), journal.ClusterSubject, Note{}); err == nil {
		t.Error("an event about the cluster was written")
	}
}
