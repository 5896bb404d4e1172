package kube

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
		requests = append(requests, strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(body)}, " "))
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
	client, sent := answeringObjects(t, http.StatusOK, `{"spec":{"replicas":2}}`, Terms{}, Options{
		OnRequest: func(verb, resource string, _ int) { counted = append(counted, verb+" "+resource) },
	})
	pod := Ref{Version: "v1", Resource: "pods", Namespace: "default", Name: "a"}
	read, readErr := client.ReadObject(t.Context(), pod)
	patched, patchErr := client.PatchObject(t.Context(), prometheus, []PatchOp{{"test", "/spec/replicas", 1}, {"replace", "/spec/replicas", 2}})
	replaced, replaceErr := client.ReplaceObject(t.Context(), prometheus, []byte(`{"spec":{"x":1}}`))
	if err := errors.Join(readErr, patchErr, replaceErr); err != nil {
		t.Fatal(err)
	}
	for _, answer := range [][]byte{read, patched, replaced} {
		if string(answer) != `{"spec":{"replicas":2}}` {
			t.Errorf("got %s", answer)
		}
	}
	want := []string{
		"GET /api/v1/namespaces/default/pods/a  ",
		"PATCH " + prometheusPath + ` application/json-patch+json [{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":2}]`,
		"PUT " + prometheusPath + ` application/json {"spec":{"x":1}}`,
	}
	if got := sent(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent:\n%s", strings.Join(got, "\n"))
	}
	if got := strings.Join(counted, ", "); got != "get pods, patch prometheuses, update prometheuses" {
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
		_, err := client.PatchObject(t.Context(), prometheus, nil)
		if !errors.Is(err, test.want) || !errors.Is(Sentinel(err), test.want) || !strings.Contains(err.Error(), "patch prometheuses monitoring/k8s") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestObjectsThatAreOnlyReadAreNotChanged(t *testing.T) {
	client, sent := answeringObjects(t, http.StatusOK, `{}`, Terms{ReadOnly: true}, Options{})
	_, patchErr := client.PatchObject(t.Context(), prometheus, nil)
	_, replaceErr := client.ReplaceObject(t.Context(), prometheus, []byte(`{}`))
	if !errors.Is(patchErr, ErrReadOnly) || !errors.Is(replaceErr, ErrReadOnly) || len(sent()) != 0 {
		t.Errorf("%v, %v; sent %q", patchErr, replaceErr, sent())
	}
}

func TestWhatAPatchMakesAndTheAPIServerRefusesIsNoConflict(t *testing.T) {
	client, _ := answeringObjects(t, http.StatusUnprocessableEntity, invalid, Terms{}, Options{})
	if _, err := client.PatchObject(t.Context(), prometheus, nil); err == nil || Sentinel(err) != nil {
		t.Errorf("got %v", err)
	}
}
