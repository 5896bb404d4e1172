package kube

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

var prometheus = Ref{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheuses", Namespace: "monitoring", Name: "k8s"}

const (
	prometheusPath = "/apis/monitoring.coreos.com/v1/namespaces/monitoring/prometheuses/k8s"
	noSuchResource = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","code":404}`
	failedTest     = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"details":{},` +
		`"message":"the server rejected our request due to an error in our request"}`
	invalid = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,` +
		`"message":"Prometheus is invalid","details":{"causes":[{"field":"spec.replicas","message":"must be 0 or more"}]}}`
	outdated  = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the object has been modified","reason":"Conflict","code":409}`
	exists    = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it exists","reason":"AlreadyExists","code":409}`
	forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}`
)

// answeringObjects serves one answer to everything and notes what it was sent.
func answeringObjects(t *testing.T, code int, answer string, terms Terms, options Options) (client Objects, sent func() []string) {
	t.Helper()
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests = append(requests, strings.Join([]string{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), string(body)}, " "))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if _, err := io.WriteString(w, answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	terms.Bind(config)
	client, err := NewObjects(config, options)
	if err != nil {
		t.Fatal(err)
	}
	return client, func() []string { return requests }
}

func TestAnObjectOfAnyGroupIsReadAndChangedByItsName(t *testing.T) {
	var counted []string
	client, sent := answeringObjects(t, http.StatusOK, `{"spec":{"replicas":2}}`, Terms{
		OnRequest: func(verb, resource string, _ int) { counted = append(counted, verb+" "+resource) },
	}, Options{})
	pod := Ref{Version: "v1", Resource: "pods", Namespace: "default", Name: "a"}
	read, readErr := client.ReadObject(t.Context(), pod)
	patched, patchErr := client.PatchObject(t.Context(), prometheus, []PatchOp{{"test", "/spec/replicas", 1}, {"replace", "/spec/replicas", 2}})
	replaced, replaceErr := client.ReplaceObject(t.Context(), prometheus, []byte(`{"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"x":1}}`))
	if err := errors.Join(readErr, patchErr, replaceErr); err != nil {
		t.Fatal(err)
	}
	scale := Ref{Group: "apps", Version: "v1", Resource: "statefulsets", Namespace: "minio", Name: "ha-minio", Subresource: "scale"}
	scaled, err := client.ReplaceObject(t.Context(), scale, []byte(`{"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"replicas":6}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range [][]byte{read, patched, replaced, scaled} {
		if string(answer) != `{"spec":{"replicas":2}}` {
			t.Errorf("got %s", answer)
		}
	}
	want := []string{
		"GET /api/v1/namespaces/default/pods/a  ",
		"PATCH " + prometheusPath + `?fieldManager=ekco application/json-patch+json [{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":2}]`,
		"PUT " + prometheusPath + `?fieldManager=ekco application/json {"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"x":1}}`,
		`PUT /apis/apps/v1/namespaces/minio/statefulsets/ha-minio/scale?fieldManager=ekco application/json {"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"replicas":6}}`,
	}
	if scale.String() != "statefulsets/scale minio/ha-minio" {
		t.Errorf("it is called %s", scale)
	}
	if got := sent(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent:\n%s", strings.Join(got, "\n"))
	}
	if got := strings.Join(counted, ", "); got != "get pods, patch prometheuses, update prometheuses, update statefulsets" {
		t.Errorf("counted are %s", got)
	}
}

func TestWhatTheAPIServerSaysOfAnObjectIsASentinel(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		answer string
		want   error
	}{
		"there is no such resource": {http.StatusNotFound, noSuchResource, ErrNotFound},
		"a test of a patch failed":  {http.StatusUnprocessableEntity, failedTest, ErrConflict},
		"it has changed":            {http.StatusConflict, outdated, ErrConflict},
		"it is forbidden":           {http.StatusForbidden, forbidden, ErrForbidden},
	} {
		client, _ := answeringObjects(t, test.code, test.answer, Terms{}, Options{})
		_, err := client.PatchObject(t.Context(), prometheus, []PatchOp{{"test", "/spec/replicas", 1}})
		if !errors.Is(err, test.want) || !errors.Is(Sentinel(err), test.want) || !strings.Contains(err.Error(), "patch prometheuses monitoring/k8s") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAChangeThatTestsNothingIsNotSent: it would overwrite what others have changed since the object was read.
func TestAChangeThatTestsNothingIsNotSent(t *testing.T) {
	client, sent := answeringObjects(t, http.StatusOK, `{}`, Terms{}, Options{})
	uid, change := PatchOp{"test", "/metadata/uid", "u"}, PatchOp{"replace", "/spec/replicas", 2}
	for name, patch := range map[string][]PatchOp{
		"nothing": {change}, "who it is": {uid, change}, "too late": {uid, change, {"test", "/spec/replicas", 2}},
		"a version that is not known": {uid, {"test", "/metadata/resourceVersion", ""}, change},
	} {
		if _, err := client.PatchObject(t.Context(), prometheus, patch); !errors.Is(err, errUntested) {
			t.Errorf("it tests %s: %v", name, err)
		}
	}
	for _, object := range []string{`{"metadata":{"uid":"u"}}`, `{"metadata":{"resourceVersion":"7"}}`, `{}`, `{"metadata":7}`} {
		if _, err := client.ReplaceObject(t.Context(), prometheus, []byte(object)); err == nil {
			t.Errorf("%s is sent", object)
		}
	}
	if len(sent()) != 0 {
		t.Errorf("sent: %q", sent())
	}
}

func TestObjectsThatAreOnlyReadAreNotChanged(t *testing.T) {
	client, sent := answeringObjects(t, http.StatusOK, `{}`, Terms{ReadOnly: true}, Options{})
	_, patchErr := client.PatchObject(t.Context(), prometheus, []PatchOp{{"test", "/spec/replicas", 1}})
	_, replaceErr := client.ReplaceObject(t.Context(), prometheus, []byte(`{"metadata":{"uid":"u","resourceVersion":"7"}}`))
	if !errors.Is(patchErr, ErrReadOnly) || !errors.Is(replaceErr, ErrReadOnly) || len(sent()) != 0 {
		t.Errorf("%v, %v; sent %q", patchErr, replaceErr, sent())
	}
}

func TestAnObjectIsCreatedInItsCollectionAndNoneOfItsNameIsReplaced(t *testing.T) {
	class := Ref{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses", Name: "a"}
	client, sent := answeringObjects(t, http.StatusCreated, `{"value":1}`, Terms{}, Options{})
	created, err := client.CreateObject(t.Context(), class, []byte(`{"metadata":{"name":"a"}}`))
	want := `POST /apis/scheduling.k8s.io/v1/priorityclasses?fieldManager=ekco application/json {"metadata":{"name":"a"}}`
	if got := sent(); err != nil || string(created) != `{"value":1}` || len(got) != 1 || got[0] != want {
		t.Errorf("%v: created %s, sent %q, want %q", err, created, got, want)
	}
	client, _ = answeringObjects(t, http.StatusConflict, exists, Terms{}, Options{})
	if _, err := client.CreateObject(t.Context(), class, []byte(`{}`)); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "create priorityclasses a") {
		t.Errorf("of one that is there: %v", err)
	}
	client, sent = answeringObjects(t, http.StatusOK, `{}`, Terms{ReadOnly: true}, Options{})
	if _, err := client.CreateObject(t.Context(), class, []byte(`{}`)); !errors.Is(err, ErrReadOnly) || len(sent()) != 0 {
		t.Errorf("of a client that only reads: %v; sent %q", err, sent())
	}
}

func TestWhatAPatchMakesAndTheAPIServerRefusesIsNoConflict(t *testing.T) {
	client, _ := answeringObjects(t, http.StatusUnprocessableEntity, invalid, Terms{}, Options{})
	if _, err := client.PatchObject(t.Context(), prometheus, []PatchOp{{"test", "/spec/replicas", 1}}); err == nil || Sentinel(err) != nil {
		t.Errorf("got %v", err)
	}
}

func TestAnObjectIsDeletedByItsUIDAndNeverByNameAlone(t *testing.T) {
	claim := Ref{Version: "v1", Resource: "persistentvolumeclaims", Namespace: "minio", Name: "data-0"}
	client, sent := answeringObjects(t, http.StatusOK, `{"metadata":{"uid":"u1"}}`, Terms{}, Options{})
	if err := client.DeleteObject(t.Context(), claim, "u1"); err != nil {
		t.Error(err)
	}
	if err := client.DeleteObject(t.Context(), claim, ""); err == nil {
		t.Error("without a UID it is deleted")
	}
	want := `DELETE /api/v1/namespaces/minio/persistentvolumeclaims/data-0 application/json {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u1"},"propagationPolicy":"Background"}`
	if got := sent(); len(got) != 1 || got[0] != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}

func TestAnotherObjectOfTheNameIsNotDeleted(t *testing.T) {
	claim := Ref{Version: "v1", Resource: "persistentvolumeclaims", Namespace: "minio", Name: "data-0"}
	for live, want := range map[string]error{`{"metadata":{"uid":"u2"}}`: ErrOtherUID, `{"metadata":{"uid":"u1"}}`: ErrConflict, "": ErrNotFound} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			answer, code := live, http.StatusOK
			switch {
			case r.Method == http.MethodDelete:
				answer, code = outdated, http.StatusConflict
			case live == "":
				answer, code = noSuchResource, http.StatusNotFound
			}
			w.WriteHeader(code)
			if _, err := io.WriteString(w, answer); err != nil {
				t.Error(err)
			}
		}))
		t.Cleanup(server.Close)
		client, err := NewObjects(&rest.Config{Host: server.URL}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.DeleteObject(t.Context(), claim, "u1"); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", live, err, want)
		}
	}
}

func TestObjectsAreListedByALabelAndEndedWithATime(t *testing.T) {
	client, sent := answeringObjects(t, http.StatusOK, `{"items":[{"a":1},{"b":2}]}`, Terms{}, Options{})
	pods := Ref{Version: "v1", Resource: "pods", Namespace: "minio"}
	list, err := client.ListObjects(t.Context(), pods, "app", "minio")
	if err != nil || len(list) != 2 || string(list[1]) != `{"b":2}` {
		t.Errorf("%v: listed %s", err, list)
	}
	if _, err := client.ListObjects(t.Context(), Ref{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "minio", Name: "a"}, "", ""); err != nil {
		t.Error(err)
	}
	if _, err := client.ReadObject(t.Context(), Ref{Version: "v1", Resource: "nodes", Name: "n1"}); err != nil {
		t.Error(err)
	}
	pods.Name = "a"
	if err := client.EndObject(t.Context(), pods, "u1", 5*time.Second); err != nil {
		t.Error(err)
	}
	want := []string{
		"GET /api/v1/namespaces/minio/pods?labelSelector=app%3Dminio  ", "GET /apis/apps/v1/namespaces/minio/deployments  ", "GET /api/v1/nodes/n1  ",
		`DELETE /api/v1/namespaces/minio/pods/a application/json {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5,"preconditions":{"uid":"u1"},"propagationPolicy":"Background"}`,
	}
	if got := sent(); !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}
