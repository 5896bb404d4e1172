package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// recorder is the answer to a request without a connection.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error { return nil }

// handlerTest is a handler that records what it does.
type handlerTest struct {
	*Handler
	results  []Result
	replaced []Override
	log      bytes.Buffer
}

func newHandlerTest(options Options) *handlerTest {
	h := &handlerTest{}
	options.Answered = func(_ string, result Result, _ time.Duration) { h.results = append(h.results, result) }
	options.Replaced = func(o Override) { h.replaced = append(h.replaced, o) }
	options.Log = slog.New(slog.NewTextHandler(&h.log, nil))
	h.Handler = New(options)
	return h
}

// post returns the response to a body. Every response must allow the object.
func (h *handlerTest) post(t testing.TB, path string, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	answer := recorder{httptest.NewRecorder()}
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil {
		t.Fatalf("status %d, answer %q: %v", answer.Code, answer.Body, err)
	}
	if answer.Code != http.StatusOK || review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Response == nil || !review.Response.Allowed {
		t.Fatalf("status %d, answer %s", answer.Code, answer.Body)
	}
	return review.Response
}

// ask sends a request for an object, and returns the object after the patch of the response.
func ask[T any](t *testing.T, h *handlerTest, path string, request admissionv1.AdmissionRequest, object, former any) T {
	t.Helper()
	request.UID = "the-uid"
	request.Object = runtime.RawExtension{Raw: encode(t, object)}
	if former != nil {
		request.OldObject = runtime.RawExtension{Raw: encode(t, former)}
	}
	response := h.post(t, path, encode(t, admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request,
	}))
	if response.UID != "the-uid" {
		t.Errorf("the response has UID %q", response.UID)
	}
	patched := request.Object.Raw
	if response.Patch != nil {
		patch, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if patched, err = patch.Apply(patched); err != nil {
			t.Fatalf("apply %s: %v", response.Patch, err)
		}
		if response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
			t.Errorf("the type of the patch is %v", response.PatchType)
		}
	}
	var result T
	if err := json.Unmarshal(patched, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func encode(t testing.TB, object any) []byte {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// podOf returns a pod with one container per image: init containers, containers and ephemeral containers.
func podOf(images ...[]string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	for i, list := range images {
		for j, image := range list {
			name := fmt.Sprintf("c%d", j)
			switch i {
			case 0:
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: name, Image: image})
			case 1:
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: image})
			case 2:
				pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
					EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: image},
				})
			}
		}
	}
	return pod
}

func imagesOf(pod corev1.Pod) string {
	var lists [3][]string
	for _, c := range pod.Spec.InitContainers {
		lists[0] = append(lists[0], c.Image)
	}
	for _, c := range pod.Spec.Containers {
		lists[1] = append(lists[1], c.Image)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		lists[2] = append(lists[2], c.Image)
	}
	return fmt.Sprint(lists)
}

var podKind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}

func TestImagesOfPodsAreReplaced(t *testing.T) {
	for _, test := range []struct {
		name        string
		former, pod []string // images of the regular containers
		lists       [][]string
		want        string
		replaced    int
	}{
		{name: "one", pod: []string{"nginx:1"}, want: "[[] [mirror/nginx:1] []]", replaced: 1},
		{name: "another", pod: []string{"redis"}, want: "[[] [redis] []]"},
		{name: "the beginning of a name", pod: []string{"nginx:1.2"}, want: "[[] [nginx:1.2] []]"},
		{name: "every kind of container", lists: [][]string{{"nginx:1", "a"}, {"redis", "nginx:1"}, {"nginx:1"}}, want: "[[mirror/nginx:1 b] [redis mirror/nginx:1] [mirror/nginx:1]]", replaced: 4},
		{name: "a chain once", pod: []string{"a", "b"}, want: "[[] [b c] []]", replaced: 2},
		{name: "the first of two overrides", pod: []string{"twice"}, want: "[[] [first] []]", replaced: 1},
		{name: "an update of another field", former: []string{"nginx:1"}, pod: []string{"nginx:1"}, want: "[[] [nginx:1] []]"},
		{name: "an update of a replaced image of a chain", former: []string{"b"}, pod: []string{"b"}, want: "[[] [b] []]"},
		{name: "an update to the image", former: []string{"redis", "a"}, pod: []string{"nginx:1", "a"}, want: "[[] [mirror/nginx:1 a] []]", replaced: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHandlerTest(Options{Overrides: []Override{
				{"nginx:1", "mirror/nginx:1"}, {"a", "b"}, {"b", "c"}, {"twice", "first"}, {"twice", "second"},
			}})
			lists := test.lists
			if lists == nil {
				lists = [][]string{nil, test.pod}
			}
			request := admissionv1.AdmissionRequest{Kind: podKind, Operation: admissionv1.Create}
			var former any
			if test.former != nil {
				request.Operation, former = admissionv1.Update, podOf(nil, test.former)
			}
			if got := imagesOf(ask[corev1.Pod](t, h, PathImages, request, podOf(lists...), former)); got != test.want {
				t.Errorf("the images are %s, want %s", got, test.want)
			}
			want := Unchanged
			if test.replaced > 0 {
				want = Patched
			}
			if len(h.replaced) != test.replaced || len(h.results) != 1 || h.results[0] != want {
				t.Errorf("replaced %v, results %v", h.replaced, h.results)
			}
		})
	}
}

func TestADebugContainerGetsTheReplacement(t *testing.T) {
	h := newHandlerTest(Options{Overrides: []Override{{"busybox", "mirror/busybox"}, {"nginx", "mirror/nginx"}}})
	request := admissionv1.AdmissionRequest{Kind: podKind, SubResource: "ephemeralcontainers", Operation: admissionv1.Update}
	before := podOf(nil, []string{"nginx"}, []string{"busybox"})
	after := podOf(nil, []string{"nginx"}, []string{"busybox", "busybox"})
	if got := imagesOf(ask[corev1.Pod](t, h, PathImages, request, after, before)); got != "[[] [nginx] [busybox mirror/busybox]]" {
		t.Errorf("the images are %s", got)
	}
}

func TestTheFieldsThatAreReadAreThoseOfKubernetes(t *testing.T) {
	of := podOf([]string{"i"}, []string{"c"}, []string{"e"})
	of.GenerateName = "web-"
	var read pod
	if err := json.Unmarshal(encode(t, of), &read); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(read); got != "{{web web-} {[{c0 i}] [{c0 c}] [{c0 e}]}}" {
		t.Errorf("read %s", got)
	}
}

func TestThePriorityClassIsSetWhereThereIsNone(t *testing.T) {
	for _, test := range []struct{ class, has, want string }{
		{"node-critical", "", "node-critical"}, {"node-critical", "mine", "mine"}, {"", "", ""},
	} {
		h := newHandlerTest(Options{PriorityClass: test.class})
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{PriorityClassName: test.has}}
		request := admissionv1.AdmissionRequest{Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}}
		deployment := ask[appsv1.Deployment](t, h, PathPriority, request, appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: template}}, nil)
		request.Kind.Kind = "DaemonSet"
		daemonSet := ask[appsv1.DaemonSet](t, h, PathPriority, request, appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: template}}, nil)
		if d, s := deployment.Spec.Template.Spec.PriorityClassName, daemonSet.Spec.Template.Spec.PriorityClassName; d != test.want || s != test.want {
			t.Errorf("%+v: a Deployment has %q, a DaemonSet %q", test, d, s)
		}
	}
}

func TestAnUnreadableRequestIsAllowedCountedAndLoggedOnce(t *testing.T) {
	request := func(kind metav1.GroupVersionKind, version, object string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","kind":{"group":%q,"version":%q,"kind":%q},"object":%s}}`,
			version, kind.Group, kind.Version, kind.Kind, object)
	}
	manyImages := `{"spec":{"containers":[` + strings.TrimSuffix(strings.Repeat(`{"image":"a"},`, 3000), ",") + `]}}`
	for name, test := range map[string]struct {
		body string
		uid  string
	}{
		"nothing":                   {"", ""},
		"no JSON":                   {"\x00\xff", ""},
		"truncated":                 {request(podKind, "admission.k8s.io/v1", `{"spec":{}}`)[:90], ""},
		"no request":                {`{"apiVersion":"admission.k8s.io/v1"}`, ""},
		"no UID":                    {`{"apiVersion":"admission.k8s.io/v1","request":{}}`, ""},
		"another version of review": {request(podKind, "admission.k8s.io/v1beta1", `{}`), "u"},
		"another kind":              {request(metav1.GroupVersionKind{Version: "v1", Kind: "Service"}, "admission.k8s.io/v1", `{}`), "u"},
		"another version of pod":    {request(metav1.GroupVersionKind{Version: "v2", Kind: "Pod"}, "admission.k8s.io/v1", `{}`), "u"},
		"no pod":                    {request(podKind, "admission.k8s.io/v1", `{"spec":7}`), "u"},
		"too long":                  {`{"a":"` + strings.Repeat("x", maxBody) + `"}`, ""},
		"too many values":           {request(podKind, "admission.k8s.io/v1", `[`+strings.Repeat("1,", maxValues)+`1]`), ""},
		"a patch that is too large": {request(podKind, "admission.k8s.io/v1", manyImages), "u"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandlerTest(Options{Overrides: []Override{{"a", strings.Repeat("b", 1000)}}})
			for range 2 {
				if response := h.post(t, PathImages, []byte(test.body)); string(response.UID) != test.uid || response.Patch != nil {
					t.Errorf("the response is %+v, want UID %q", response, test.uid)
				}
			}
			if fmt.Sprint(h.results) != "[unreadable unreadable]" || strings.Count(h.log.String(), "level=WARN") != 1 || len(h.replaced) > 0 {
				t.Errorf("results %v, replaced %v, log %s", h.results, h.replaced, h.log.String())
			}
		})
	}
}

func TestAPanicEndsOneRequest(t *testing.T) {
	h := newHandlerTest(Options{Overrides: []Override{{"a", "b"}}})
	record := h.options.Replaced
	h.options.Replaced = func(Override) { panic("a test") }
	request := admissionv1.AdmissionRequest{Kind: podKind, Operation: admissionv1.Create}
	if got := imagesOf(ask[corev1.Pod](t, h, PathImages, request, podOf(nil, []string{"a"}), nil)); got != "[[] [a] []]" {
		t.Errorf("after a panic the images are %s", got)
	}
	h.options.Replaced = record
	if got := imagesOf(ask[corev1.Pod](t, h, PathImages, request, podOf(nil, []string{"a"}), nil)); got != "[[] [b] []]" {
		t.Errorf("the next images are %s", got)
	}
}

func TestOnlyPOSTToTheTwoPathsIsAnswered(t *testing.T) {
	h := newHandlerTest(Options{})
	for _, request := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, PathImages, http.StatusMethodNotAllowed}, {http.MethodPost, "/", http.StatusNotFound}, {http.MethodPost, PathImages + "/x", http.StatusNotFound},
	} {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(request.method, request.path, http.NoBody))
		if answer.Code != request.status {
			t.Errorf("%s %s: status %d", request.method, request.path, answer.Code)
		}
	}
}

func FuzzRequestsAreAllowed(f *testing.F) {
	review := func(kind metav1.GroupVersionKind, object any) []byte {
		return encode(f, admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Request: &admissionv1.AdmissionRequest{
				UID: "u", Kind: kind, Operation: admissionv1.Update,
				Object: runtime.RawExtension{Raw: encode(f, object)}, OldObject: runtime.RawExtension{Raw: encode(f, podOf())},
			},
		})
	}
	f.Add(review(podKind, podOf([]string{"a"}, []string{"a", "x"}, []string{"a"})))
	f.Add(review(metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}, appsv1.DaemonSet{}))
	f.Add([]byte("{"))
	h := newHandlerTest(Options{Overrides: []Override{{"a", "b"}}, PriorityClass: "high"})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{PathImages, PathPriority} {
			response := h.post(t, path, body)
			if response.Patch == nil {
				continue
			}
			var review admissionv1.AdmissionReview
			patch, err := jsonpatch.DecodePatch(response.Patch)
			if err == nil {
				err = json.Unmarshal(body, &review)
			}
			if err != nil || len(patch) == 0 || response.UID != review.Request.UID {
				t.Errorf("the patch is %s: %v", response.Patch, err)
			}
		}
	})
}
