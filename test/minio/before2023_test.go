package miniotest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/s3/replica"
)

// extension is what servers add to a list of versions since April 2023 (minio/minio#16930).
var extension = regexp.MustCompile(`(?s)<UserMetadata>.*?</UserMetadata>|<UserMetadata/>|<UserTags>.*?</UserTags>|<Internal>.*?</Internal>`)

// before2023 is a server whose lists are those of earlier releases, which the module proxy does not have.
func before2023(t *testing.T, s side) side {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: s.store.Address(0)}
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			if !r.Request.URL.Query().Has("versions") {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			body = extension.ReplaceAll(body, nil)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return err
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return side{ekcoAt(t, server.Listener.Addr().String()), s.app, s.store}
}

// TestAttributesAreCopiedFromServersThatDoNotListThem: their lists look like those of objects without any.
func TestAttributesAreCopiedFromServersThatDoNotListThem(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1), newSide(t, 6)
	if err := source.app.MakeBucket(t.Context(), "locked", minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	id := source.put(t, "locked", "a", "content", minio.PutObjectOptions{
		ContentType: "application/octet-stream", UserTags: map[string]string{"keep": "forever"}, LegalHold: minio.LegalHoldEnabled,
	})
	copied(t, before2023(t, source), before2023(t, target), replica.Options{})
	tags, err := target.app.GetObjectTagging(t.Context(), "locked", "a", minio.GetObjectTaggingOptions{VersionID: id})
	if err != nil || tags.ToMap()["keep"] != "forever" {
		t.Errorf("the tags are %v, %v", tags, err)
	}
	hold, err := target.app.GetObjectLegalHold(t.Context(), "locked", "a", minio.GetObjectLegalHoldOptions{VersionID: id})
	if err != nil || hold == nil || *hold != minio.LegalHoldEnabled {
		t.Errorf("the legal hold is %v, %v", hold, err)
	}
}
