package s3_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/s3"
)

// shelf lists the versions of a bucket as MinIO does, in pages of what it is asked for. They
// are named as key@version.
type shelf struct {
	versions []string
	// garbled are keys whose metadata make a listing unreadable.
	garbled string
	lists   []string
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if !query.Has("versions") {
		fmt.Fprint(w, "<LocationConstraint/>")
		return
	}
	s.lists = append(s.lists, query.Get("prefix"))
	size, err := strconv.Atoi(query.Get("max-keys"))
	if err != nil {
		size = 1000
	}
	rest := slices.DeleteFunc(slices.Clone(s.versions), func(v string) bool { return !strings.HasPrefix(v, query.Get("prefix")) })
	switch key, id := query.Get("key-marker"), query.Get("version-id-marker"); {
	case id != "":
		rest = rest[slices.Index(rest, key+"@"+id)+1:]
	case key != "":
		rest = slices.DeleteFunc(rest, func(v string) bool { of, _, _ := strings.Cut(v, "@"); return of <= key })
	}
	page := rest[:min(size, len(rest))]
	fmt.Fprintf(w, "<ListVersionsResult><IsTruncated>%t</IsTruncated>", len(page) < len(rest))
	for _, v := range page {
		key, id, _ := strings.Cut(v, "@")
		metadata := ""
		if key == s.garbled && query.Get("metadata") == "true" {
			metadata = "<UserMetadata><0/></UserMetadata>"
		}
		fmt.Fprintf(w, "<Version><Key>%s</Key><VersionId>%s</VersionId><LastModified>2026-11-24T03:00:00Z</LastModified>%s</Version>", key, id, metadata)
		if v == page[len(page)-1] && len(page) < len(rest) {
			fmt.Fprintf(w, "<NextKeyMarker>%s</NextKeyMarker><NextVersionIdMarker>%s</NextVersionIdMarker>", key, id)
		}
	}
	fmt.Fprint(w, "</ListVersionsResult>")
}

// client is one of a server with the shelf.
func (s *shelf) client(t *testing.T) *s3.Client {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := s3.NewClient(s3.Endpoint{Address: strings.TrimPrefix(server.URL, "http://"), Credentials: s3.Credentials{AccessKey: "a", SecretKey: "b"}}, s3.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestAListBeginsAfterAKeyAndHasEachVersionOnce(t *testing.T) {
	for _, garbled := range []string{"", "c"} {
		on := &shelf{versions: []string{"a@1", "b@2", "b@1", "c@2", "c@1", "d@1"}, garbled: garbled}
		var have []string
		for v, err := range on.client(t).Versions(t.Context(), "bucket", "a") {
			if err != nil {
				t.Fatal(err)
			}
			have = append(have, v.Key+"@"+v.ID)
		}
		if want := on.versions[1:]; !slices.Equal(have, want) {
			t.Errorf("with metadata of %q that cannot be read, listed are %q", garbled, have)
		}
	}
}

func TestAnObjectAloneHasItsVersionsAndNoOthers(t *testing.T) {
	many := make([]string, 45)
	for i := range many {
		many[i] = fmt.Sprintf("many@%02d", i)
	}
	all := slices.Concat([]string{"b@1", "bb@1", "garbled@2", "garbled@1", "garbled/er@1"}, many, []string{"many/more@1"})
	for key, test := range map[string]struct {
		want  []string
		lists int
	}{
		"b":       {[]string{"b@1"}, 1},
		"a":       {nil, 1},
		"bb":      {[]string{"bb@1"}, 1},
		"garbl":   {nil, 2}, // of one whose metadata cannot be read
		"garbled": {[]string{"garbled@2", "garbled@1"}, 2},
		"many":    {many, 3},
	} {
		t.Run(key, func(t *testing.T) {
			on := &shelf{versions: all, garbled: "garbled"}
			client := on.client(t)
			versions, err := client.VersionsOf(t.Context(), "bucket", key)
			var have []string
			for _, v := range versions {
				have = append(have, v.Key+"@"+v.ID)
			}
			if err != nil || !slices.Equal(have, test.want) {
				t.Errorf("listed are %q, %v", have, err)
			}
			if len(on.lists) != test.lists || slices.ContainsFunc(on.lists, func(prefix string) bool { return prefix != key }) {
				t.Errorf("asked for are %q", on.lists)
			}
		})
	}
}

func TestAnObjectThatCannotBeListedIsNotCalledEmpty(t *testing.T) {
	client, _ := answering(t, http.StatusForbidden, "<Error><Code>AccessDenied</Code></Error>")
	if versions, err := client.VersionsOf(t.Context(), "bucket", "key"); err == nil {
		t.Errorf("listed are %+v", versions)
	}
}
