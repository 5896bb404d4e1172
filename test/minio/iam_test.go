package miniotest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	miniotest "github.com/replicatedhq/ekco/test/minio"
)

const readOnly = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::bucket*"]}]}`

// may reports whether somebody can read an object.
func may(t *testing.T, store *miniotest.Store, access, secret string) bool {
	t.Helper()
	client, err := minio.New(store.Address(0), &minio.Options{Creds: credentials.NewStaticV4(access, secret, ""), MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.StatObject(t.Context(), "bucket", "key", minio.StatObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code != "AccessDenied" && minio.ToErrorResponse(err).StatusCode != http.StatusForbidden {
		t.Fatal(err)
	}
	return err == nil
}

func TestUsersGroupsPoliciesAndServiceAccountsGoAlongAndWhatIsRemovedStaysSo(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1), newSide(t, 1)
	for _, one := range []side{source, target} {
		one.bucket(t, "bucket")
		one.put(t, "bucket", "key", "content", minio.PutObjectOptions{})
	}
	mc := miniotest.NewClient(t, programs, map[string]*miniotest.Store{"source": source.store, "target": target.store})
	policy := t.TempDir() + "/policy.json"
	if err := os.WriteFile(policy, []byte(readOnly), 0o600); err != nil {
		t.Fatal(err)
	}
	mc.Run("admin", "policy", "create", "source", "own", policy)
	for _, user := range []string{"reader", "disabled", "detached", "member", "former", "in none"} {
		mc.Run("admin", "user", "add", "source", user, "secret-"+user)
	}
	mc.Run("admin", "policy", "attach", "source", "own", "--user", "reader")
	mc.Run("admin", "policy", "attach", "source", "own", "--user", "disabled")
	mc.Run("admin", "policy", "attach", "source", "own", "--user", "detached")
	mc.Run("admin", "user", "disable", "source", "disabled")
	mc.Run("admin", "group", "add", "source", "readers", "member", "former")
	mc.Run("admin", "policy", "attach", "source", "own", "--group", "readers")
	mc.Run("admin", "group", "add", "source", "off", "in none")
	mc.Run("admin", "policy", "attach", "source", "own", "--group", "off")
	mc.Run("admin", "group", "disable", "source", "off")
	var account struct{ AccessKey, SecretKey string }
	created := mc.Run("admin", "user", "svcacct", "add", "--json", "--access-key", "ofreader", "--secret-key", "secret-of-account", "source", "reader")
	if err := json.Unmarshal([]byte(created), &account); err != nil {
		t.Fatal(err)
	}

	iam, err := source.ExportIAM(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if printed := fmt.Sprintf("%v %+v %#v %s", iam, iam, iam, iam); strings.Contains(printed, "secret") {
		t.Errorf("it prints %s", printed)
	}
	if differ, err := target.ImportIAM(t.Context(), iam, func(string) bool { return true }); err != nil || len(differ) > 0 {
		t.Fatalf("import: %v, not carried over: %v", err, differ)
	}
	for name, want := range map[string]bool{"reader": true, "disabled": false, "detached": true, "member": true, "former": true, "in none": false} {
		if here, there := may(t, source.store, name, "secret-"+name), may(t, target.store, name, "secret-"+name); here != want || there != want {
			t.Errorf("%s may read: %t, and %t on the target", name, here, there)
		}
	}
	if !may(t, target.store, account.AccessKey, account.SecretKey) {
		t.Error("the service account may not read")
	}

	mc.Run("admin", "group", "remove", "source", "readers", "former")
	mc.Run("admin", "policy", "detach", "source", "own", "--user", "detached")
	mc.Run("admin", "user", "svcacct", "remove", "source", account.AccessKey)
	mc.Run("admin", "user", "remove", "source", "member")
	mc.Run("admin", "group", "remove", "source", "off", "in none")
	mc.Run("admin", "group", "remove", "source", "off")
	changed, err := source.ExportIAM(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	differ := changed.Differences(iam)
	for _, want := range []string{"group off", "group readers", "user member", "service account ofreader", "policy of user detached", "policy of group off"} {
		if !slices.ContainsFunc(differ, func(name string) bool { return strings.HasPrefix(name, want+" (") }) {
			t.Errorf("%q is not among the differences %q", want, differ)
		}
	}
	if differ, err := target.ImportIAM(t.Context(), changed, func(string) bool { return true }); err != nil || len(differ) > 0 {
		t.Fatalf("import: %v, not carried over: %v", err, differ)
	}
	for name, want := range map[string]bool{"reader": true, "member": false, "former": false, "detached": false} {
		if may(t, target.store, name, "secret-"+name) != want {
			t.Errorf("%s may read on the target: %t", name, !want)
		}
	}
	if may(t, target.store, account.AccessKey, account.SecretKey) {
		t.Error("the removed service account may read")
	}
}
