package s3_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/s3"
)

// TestWhatARefusalMeans: what is gone is left to the next pass, what is not accepted is named as
// not carried over, and what may only be so for now is tried again.
func TestWhatARefusalMeans(t *testing.T) {
	sentinels := []error{s3.ErrGone, s3.ErrDigest, s3.ErrLocked, s3.ErrNotOffered, s3.ErrDenied, s3.ErrFull, s3.ErrHealing, s3.ErrForgotten}
	for _, test := range []struct {
		status  int
		code    string
		is      error // nil for none of the sentinels
		refused bool
	}{
		{404, "NoSuchBucket", s3.ErrGone, false},
		{404, "NoSuchKey", s3.ErrGone, false},
		{404, "NoSuchVersion", s3.ErrGone, false},
		{404, "SomethingNew", s3.ErrGone, false},
		{405, "MethodNotAllowed", s3.ErrGone, false},
		{416, "InvalidRange", s3.ErrGone, false},
		{400, "BadDigest", s3.ErrDigest, false},
		{400, "XAmzContentSHA256Mismatch", s3.ErrDigest, false},
		{400, "ObjectLocked", s3.ErrLocked, false},
		{501, "NotImplemented", s3.ErrNotOffered, false},
		{403, "AccessDenied", s3.ErrDenied, false},
		{403, "InvalidAccessKeyId", s3.ErrDenied, false},
		{403, "SignatureDoesNotMatch", s3.ErrDenied, false},
		{507, "XMinioStorageFull", s3.ErrFull, false},
		{400, "XMinioAdminBucketQuotaExceeded", s3.ErrFull, false},
		{400, "InvalidArgument", nil, true},
		{409, "SomethingNew", nil, true},
		{408, "RequestTimeout", nil, false},
		{429, "TooManyRequests", nil, false},
		{500, "InternalError", nil, false},
		{503, "SlowDown", nil, false},
	} {
		t.Run(fmt.Sprint(test.status, " ", test.code), func(t *testing.T) {
			client, _ := answering(t, test.status, fmt.Sprintf(`{"Code":%q,"Message":"in the server's words"}`, test.code))
			_, err := client.Server(t.Context())
			var refused s3.Refusal
			if err == nil || errors.As(err, &refused) != test.refused || test.refused && refused.Reason() != "in the server's words" {
				t.Errorf("refused: %t, %v", refused != nil, err)
			}
			for _, sentinel := range sentinels {
				if is := errors.Is(err, sentinel); is != (sentinel == test.is) { //nolint:errorlint // which of them it is
					t.Errorf("it is %q: %t", sentinel, is)
				}
			}
		})
	}
}

// TestASettingThatCannotBeReadIsNotTakenForNone: where the single MinIO denies everybody, the
// other one would let them in.
func TestASettingThatCannotBeReadIsNotTakenForNone(t *testing.T) {
	const none = "<Error><Code>NoSuchBucketPolicy</Code></Error>"
	// of answers so about one setting, and that there is none of the others.
	of := func(setting string, status int, code string) (s3.Settings, error) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has(setting) || strings.HasSuffix(r.URL.Path, "/"+setting) {
				w.WriteHeader(status)
				fmt.Fprint(w, "<Error><Code>"+code+"</Code></Error>")
				return
			}
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, none)
		}))
		defer server.Close()
		client, err := s3.NewClient(s3.Endpoint{Address: strings.TrimPrefix(server.URL, "http://"), Credentials: s3.Credentials{AccessKey: "a", SecretKey: "b"}}, s3.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		return client.Settings(t.Context(), "bucket")
	}
	for code, setting := range map[string]string{
		"NoSuchBucketPolicy": "policy", "NoSuchTagSet": "tagging", "NoSuchLifecycleConfiguration": "lifecycle",
		"ObjectLockConfigurationNotFoundError": "object-lock", "NoSuchCORSConfiguration": "cors", "XMinioAdminNoSuchQuotaConfiguration": "get-bucket-quota",
	} {
		if got, err := of(setting, http.StatusNotFound, code); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", code, got, err)
		}
	}
	for _, setting := range []string{"policy", "object-lock", "versioning", "lifecycle", "get-bucket-quota"} {
		for code, status := range map[string]int{"InternalError": 500, "SlowDown": 503, "AccessDenied": 403, "NoSuchBucket": 404, "MalformedPolicy": 400} {
			if got, err := of(setting, status, code); err == nil {
				t.Errorf("%s, %s: %v", setting, code, got)
			}
		}
	}
}

// TestAQuotaIsOneByWhateverNameItGoes: servers have called it quota, and size since.
func TestAQuotaIsOneByWhateverNameItGoes(t *testing.T) {
	for answer, is := range map[string]bool{
		`{"quota":1024,"size":0,"rate":0,"requests":0,"quotatype":"hard"}`: true,
		`{"quota":0,"size":1024,"rate":0,"requests":0}`:                    true,
		`{"quota":0,"size":0,"rate":7,"requests":0}`:                       true,
		`{"quota":0,"size":0,"rate":0,"requests":7}`:                       true,
		`{"quota":0,"size":0,"rate":0,"requests":0,"quotatype":"hard"}`:    false,
	} {
		client, _ := answering(t, http.StatusOK, answer)
		got, err := client.Settings(t.Context(), "bucket")
		if want := map[bool]string{true: answer}[is]; err != nil || got[s3.Quota] != want {
			t.Errorf("%s: %q, %v", answer, got[s3.Quota], err)
		}
	}
}

// TestAnAnswerThatIsTooLongIsNone: half a policy is another one.
func TestAnAnswerThatIsTooLongIsNone(t *testing.T) {
	client, _ := answering(t, http.StatusOK, strings.Repeat("x", 16<<20+1))
	if got, err := client.Settings(t.Context(), "bucket"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%d settings, %v", len(got), err)
	}
}

func TestADriveWorksOnlyIfItsServerSaysThatItIsWell(t *testing.T) {
	client, _ := answering(t, http.StatusOK, `{"deploymentID":"id-1","backend":{"standardSCParity":3},"servers":[
		{"endpoint":"ha-minio-0.ha-minio:9000","version":"v1","drives":[
			{"endpoint":"http://ha-minio-0.ha-minio.minio.svc.cluster.local:9000/data","state":"ok","totalspace":100,"availspace":70,"major":8,"minor":1,"set_index":0},
			{"endpoint":"/data","state":"unformatted","set_index":1}]},
		{"endpoint":"ha-minio-1.ha-minio:9000","drives":[{"endpoint":"/data","state":"offline"},{"endpoint":"/data","state":"healing"}]}]}`)
	got, err := client.Server(t.Context())
	if err != nil || got.Version != "v1" || got.Deployment != "id-1" || got.Parity != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	var drives []string
	for _, d := range got.Drives {
		drives = append(drives, fmt.Sprintf("%s %t %v %d of %d on %q", d.Host, d.Works, d.Set, d.Free, d.Total, d.Device))
	}
	want := []string{
		`ha-minio-0.ha-minio.minio.svc.cluster.local true [0 0] 70 of 100 on "8:1"`,
		`ha-minio-0.ha-minio false [0 1] 0 of 0 on ""`,
		`ha-minio-1.ha-minio false [0 0] 0 of 0 on ""`,
		`ha-minio-1.ha-minio false [0 0] 0 of 0 on ""`,
	}
	if strings.Join(drives, "\n") != strings.Join(want, "\n") {
		t.Errorf("drives:\n%s", strings.Join(drives, "\n"))
	}
	client, _ = answering(t, http.StatusOK, `{"deploymentID":"id-1"}`)
	if got, err := client.Server(t.Context()); err == nil {
		t.Errorf("a store without servers: %+v", got)
	}
}

// TestABucketThatIsThereOrGoneIsSuccess for who makes it, or removes it.
func TestABucketThatIsThereOrGoneIsSuccess(t *testing.T) {
	for code, status := range map[string]int{"BucketAlreadyOwnedByYou": 409, "BucketAlreadyExists": 409} {
		client, _ := answering(t, status, "<Error><Code>"+code+"</Code></Error>")
		if err := client.CreateBucket(t.Context(), "bucket", false); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		if err := client.RemoveBucket(t.Context(), "bucket"); err == nil {
			t.Errorf("removed although %s", code)
		}
	}
	client, _ := answering(t, http.StatusNotFound, "<Error><Code>NoSuchBucket</Code></Error>")
	if err := client.RemoveBucket(t.Context(), "bucket"); err != nil {
		t.Errorf("gone: %v", err)
	}
	if err := client.CreateBucket(t.Context(), "bucket", false); err == nil {
		t.Error("made although it is not there")
	}
}

// TestWhatCannotBeTakenAwayIsNotSaidToBe: what is not offered becomes a warning.
func TestWhatCannotBeTakenAwayIsNotSaidToBe(t *testing.T) {
	for name, want := range map[s3.SettingName]string{
		s3.Versioning: "", s3.ObjectLock: "", s3.Region: "",
		s3.Policy: "DELETE /bucket/?policy= ", s3.Lifecycle: "DELETE /bucket/?lifecycle= ",
		s3.Quota: `PUT /minio/admin/v3/set-bucket-quota?bucket=bucket {"quota":0}`,
	} {
		client, asked := answering(t, http.StatusOK, "")
		err := client.Set(t.Context(), "bucket", name, "")
		if asked() != want || errors.Is(err, s3.ErrNotOffered) != (want == "") || want != "" && err != nil {
			t.Errorf("%s: asked %q, %v", name, asked(), err)
		}
	}
}
