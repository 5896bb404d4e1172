package s3_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/s3"
)

// users is a server with users and policies: an import makes its export another one.
type users struct {
	t           *testing.T
	have, after []byte
	asked       []string
	fails       string
}

func (u *users) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := strings.TrimPrefix(r.URL.Path, "/minio/admin/v3")
	if call == "/export-iam" {
		if _, err := w.Write(u.have); err != nil {
			u.t.Error(err)
		}
		return
	}
	if u.fails != "" && call == u.fails {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"Code":"AccessDenied"}`)
		return
	}
	if call == "/import-iam" {
		u.have = u.after
		u.asked = append(u.asked, call)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		u.t.Error(err)
	}
	u.asked = append(u.asked, strings.TrimSpace(call+" "+r.URL.Query().Encode()+" "+string(body)))
}

func (u *users) client() *s3.Client {
	u.t.Helper()
	server := httptest.NewServer(u)
	u.t.Cleanup(server.Close)
	client, err := s3.NewClient(s3.Endpoint{Address: strings.TrimPrefix(server.URL, "http://"), Credentials: s3.Credentials{AccessKey: "a", SecretKey: "b"}}, s3.Options{})
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(client.Close)
	return client
}

// with is an export with other files than those of [allFiles].
func with(t *testing.T, files map[string]string) []byte {
	t.Helper()
	all := allFiles()
	for name, content := range files {
		all[name] = content
	}
	return exported(t, all)
}

const member = `{"ops":{"status":"disabled","members":["app"]}}`

// TestUsersThatTheSourceDoesNotHaveAreRemoved before the others are imported: somebody took their
// access away. What they have goes before them, and nobody else loses anything.
func TestUsersThatTheSourceDoesNotHaveAreRemoved(t *testing.T) {
	archive := with(t, map[string]string{"groups.json": member})
	want, err := s3.ReadIAM(archive)
	if err != nil {
		t.Fatal(err)
	}
	u := &users{t: t, after: archive, have: with(t, map[string]string{
		"users.json":         `{"app":{"secretKey":"s3cr3t","status":"enabled"},"former":{"secretKey":"x","status":"enabled"}}`,
		"svcaccts.json":      `{"robot":{"parent":"former"}}`,
		"policies.json":      `{"all":{}}`,
		"user_mappings.json": `{"former":{"policy":"all"}}`,
		"groups.json":        `{"ops":{"status":"enabled","members":["app","former"]},"old":{"status":"enabled","members":["former"]}}`,
	})}
	refused, err := u.client().ImportIAM(t.Context(), want, anyone)
	if err != nil || len(refused) != 0 {
		t.Errorf("refused %v, %v", refused, err)
	}
	asked := []string{
		"/delete-service-account accessKey=robot",
		"/set-user-or-group-policy isGroup=false&policyName=&userOrGroup=former",
		`/update-group-members  {"group":"old","isRemove":true,"members":["former"]}`,
		`/update-group-members  {"group":"old","isRemove":true,"members":[]}`,
		`/update-group-members  {"group":"ops","isRemove":true,"members":["former"]}`,
		"/remove-user accessKey=former",
		"/remove-canned-policy name=all",
		"/import-iam",
		"/set-group-status group=ops&status=disabled", // an import enables all
	}
	if !slices.Equal(u.asked, asked) {
		t.Errorf("asked for:\n%s", strings.Join(u.asked, "\n"))
	}
	u.asked = nil
	if refused, err := u.client().ImportIAM(t.Context(), want, anyone); err != nil || len(refused)+len(u.asked) != 0 {
		t.Errorf("of what is the same: refused %v, asked for %v, %v", refused, u.asked, err)
	}
}

// TestWhatAnImportLeftOutIsNamed: it does not say so itself.
func TestWhatAnImportLeftOutIsNamed(t *testing.T) {
	want, err := s3.ReadIAM(with(t, map[string]string{"svcaccts.json": `{"robot":{"parent":"app"}}`, "groups.json": member}))
	if err != nil {
		t.Fatal(err)
	}
	u := &users{t: t, have: with(t, map[string]string{"users.json": "{}"}), after: with(t, map[string]string{"groups.json": strings.Replace(member, "disabled", "enabled", 1)})}
	refused, err := u.client().ImportIAM(t.Context(), want, anyone)
	if err != nil || len(refused) != 2 || !strings.HasPrefix(refused[0], "service account robot (") || !strings.HasPrefix(refused[1], "group ops (") {
		t.Errorf("refused %v, %v", refused, err)
	}
}

// TestAnotherContentIsAnotherName: a person releases what the content was. A secret has no part in it.
func TestAnotherContentIsAnotherName(t *testing.T) {
	none, err := s3.ReadIAM(with(t, map[string]string{"users.json": "{}"}))
	if err != nil {
		t.Fatal(err)
	}
	names := func(user string) [2]string {
		t.Helper()
		iam, err := s3.ReadIAM(with(t, map[string]string{"users.json": `{"app":` + user + `}`}))
		if err != nil {
			t.Fatal(err)
		}
		return [2]string(slices.Concat(iam.NotIn(none), none.Differences(iam)))
	}
	was := names(`{"secretKey":"s3cr3t","status":"enabled"}`)
	if was[0] != was[1] || names(`{"secretKey":"other","status":"enabled"}`) != was || names(`{"secretKey":"s3cr3t","status":"disabled"}`) == was {
		t.Errorf("it has the names %v", was)
	}
}

// TestAnImportThatFailsInItsMiddleSaysSo: the target has users that the source does not have.
func TestAnImportThatFailsInItsMiddleSaysSo(t *testing.T) {
	for _, call := range []string{"/remove-user", "/import-iam", "/set-group-status"} {
		archive := with(t, map[string]string{"groups.json": member})
		want, err := s3.ReadIAM(archive)
		if err != nil {
			t.Fatal(err)
		}
		u := &users{t: t, fails: call, after: archive, have: with(t, map[string]string{"users.json": `{"former":{"secretKey":"x","status":"enabled"}}`})}
		if refused, err := u.client().ImportIAM(t.Context(), want, anyone); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: refused %v, %v", call, refused, err)
		}
	}
}

// TestOnlyWhoMayBeRemovedIsRemoved, by the name with the content that a person released.
func TestOnlyWhoMayBeRemovedIsRemoved(t *testing.T) {
	archive := with(t, nil)
	want, err := s3.ReadIAM(archive)
	if err != nil {
		t.Fatal(err)
	}
	const both = `{"app":{"secretKey":"s3cr3t","status":"enabled"},"former":{"secretKey":"x","status":"enabled"},"other":{"secretKey":"x","status":"enabled"}}`
	had := with(t, map[string]string{"users.json": both})
	have, err := s3.ReadIAM(had)
	if err != nil {
		t.Fatal(err)
	}
	beyond := have.NotIn(want)
	u := &users{t: t, after: had, have: had}
	if _, err := u.client().ImportIAM(t.Context(), want, func(name string) bool { return name == beyond[0] }); err != nil {
		t.Fatal(err)
	}
	if removed := slices.DeleteFunc(u.asked, func(call string) bool { return !strings.HasPrefix(call, "/remove-user") }); len(beyond) != 2 || !slices.Equal(removed, []string{"/remove-user accessKey=former"}) {
		t.Errorf("of %v are removed %v", beyond, removed)
	}
}

// TestWhatOneSideHasAloneIsNotChanged, and a policy is built in only by its whole name.
func TestWhatOneSideHasAloneIsNotChanged(t *testing.T) {
	read := func(users, policies string) *s3.IAM {
		t.Helper()
		iam, err := s3.ReadIAM(with(t, map[string]string{"users.json": users, "policies.json": policies}))
		if err != nil {
			t.Fatal(err)
		}
		return iam
	}
	one, other := read(`{"app":{"status":"enabled"},"ours":{}}`, `{"readonly":{},"readonly-too":{}}`), read(`{"app":{"status":"disabled"},"theirs":{}}`, `{"readonly":{"a":1},"readonly-too":{"a":1}}`)
	var of []string
	for _, name := range one.Changed(other) {
		if bare, _, _ := strings.Cut(name, " ("); !s3.IsBuiltIn(name) {
			of = append(of, bare)
		}
	}
	if slices.Sort(of); !slices.Equal(of, []string{"policy readonly-too", "user app"}) {
		t.Errorf("changed are %v", of)
	}
}

// anyone may be removed.
func anyone(string) bool { return true }
