// Package webhook answers the admission requests of API servers: it replaces images in pods, and sets the priority class
// of Deployments and DaemonSets. It never refuses an object.
//
// The requests and answers are those of admission.k8s.io/v1:
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
package webhook

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// The paths of the two webhooks. EKCO 0.28 used the same.
const (
	PathImages   = "/pod-image-overrides"
	PathPriority = "/rook-priority"
)

// Result is what the handler did with a request.
type Result string

// The results of requests.
const (
	// Patched: the answer has a patch.
	Patched Result = "patched"
	// Unchanged: the object needs no patch.
	Unchanged Result = "unchanged"
	// Unreadable: the request could not be read, or was too large. The answer allows the object without a patch.
	Unreadable Result = "unreadable"
)

// Override replaces the image Original by Replacement.
type Override struct{ Original, Replacement string }

// Options are what a [Handler] does, and whom it tells.
type Options struct {
	// Overrides are the images to replace. Of several with the same Original, the first applies.
	Overrides []Override
	// PriorityClass is the class for Deployments and DaemonSets without one. If it is empty, none is set.
	PriorityClass string
	// Answered is called after each request to one of the paths.
	Answered func(path string, result Result, took time.Duration)
	// Replaced is called for each image that an answer replaces.
	Replaced func(Override)
	Log      *slog.Logger
}

// Handler answers admission requests. Every answer allows the object.
type Handler struct {
	options Options
	// replacements has the replacement of each original image.
	replacements map[string]string
	bodies       *bodies
	mux          *http.ServeMux
	// complaints limits messages about requests that cannot be read, because any pod can send such requests.
	complaints rate.Sometimes
}

// New returns a handler. All functions in options must be set.
func New(options Options) *Handler {
	h := &Handler{
		options: options, replacements: make(map[string]string), bodies: newBodies(), mux: http.NewServeMux(),
		complaints: rate.Sometimes{Interval: time.Minute},
	}
	for _, override := range options.Overrides {
		if _, exists := h.replacements[override.Original]; !exists {
			h.replacements[override.Original] = override.Replacement
		}
	}
	h.mux.HandleFunc("POST "+PathImages, h.answer(PathImages, h.replaceImages))
	h.mux.HandleFunc("POST "+PathPriority, h.answer(PathPriority, h.setPriority))
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// mutation returns the patch of an object that is created or updated, or nil.
type mutation func(request *admissionv1.AdmissionRequest) ([]kube.PatchOp, error)

func (h *Handler) answer(path string, mutate mutation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began, result := time.Now(), Unchanged
		response, err := h.respond(w, r, mutate)
		switch {
		case err != nil:
			result = Unreadable
			h.complaints.Do(func() {
				h.options.Log.Warn("cannot read an admission request; the object is allowed unchanged", "path", path, "from", r.RemoteAddr, "error", err)
			})
		case response.Patch != nil:
			result = Patched
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: response,
		}); err != nil {
			h.options.Log.Debug("the API server closed the connection before the answer", "path", path, "error", err)
		}
		h.options.Answered(path, result, time.Since(began))
	}
}

// respond returns a response that allows the object, also with an error.
func (h *Handler) respond(w http.ResponseWriter, r *http.Request, mutate mutation) (response *admissionv1.AdmissionResponse, err error) {
	response = &admissionv1.AdmissionResponse{Allowed: true}
	defer func() {
		if cause := recover(); cause != nil {
			response.Patch, response.PatchType = nil, nil
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	body, release, err := h.bodies.read(w, r)
	if err != nil {
		return response, err
	}
	defer release()
	var review admissionv1.AdmissionReview
	switch err := json.Unmarshal(body, &review); {
	case err != nil:
		return response, fmt.Errorf("read the AdmissionReview: %w", err)
	case review.Request == nil || review.Request.UID == "":
		return response, fmt.Errorf("read the AdmissionReview: it has no request with a UID")
	}
	response.UID = review.Request.UID
	if review.APIVersion != admissionv1.SchemeGroupVersion.String() {
		return response, fmt.Errorf("read the AdmissionReview: its version is %q, want %s", review.APIVersion, admissionv1.SchemeGroupVersion)
	}
	patch, err := mutate(review.Request)
	if err != nil || len(patch) == 0 {
		return response, err
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return response, fmt.Errorf("encode the patch: %w", err)
	}
	patchType := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = encoded, &patchType
	return response, nil
}

// decode reads the object of a request. An object of another type is an error, because its fields can have another
// meaning.
func decode(request *admissionv1.AdmissionRequest, raw []byte, into any, expected ...metav1.GroupVersionKind) error {
	for _, kind := range expected {
		if request.Kind == kind {
			if err := json.Unmarshal(raw, into); err != nil {
				return fmt.Errorf("read %s %s/%s: %w", kind.Kind, request.Namespace, request.Name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("read %s: want %s", request.Kind.String(), expected[0].String())
}
