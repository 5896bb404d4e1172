package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/lifecycle"
	"github.com/minio/minio-go/v7/pkg/tags"

	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// The credentials of an application, a service account of a user who may do all in two
// buckets and read a third.
const (
	accountKey    = "ofwriter"
	accountSecret = "secret-of-account"
)

const writerPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:*"],"Resource":["arn:aws:s3:::account","arn:aws:s3:::account/*","arn:aws:s3:::versioned/*"]}]}`

// contents are those of a MinIO at an address, HOST:PORT, of which the judge knows it by a
// name.
type contents struct {
	t      *testing.T
	client *minio.Client
	mc     *miniotest.Client
	name   string
}

// contentsOf returns those of several MinIOs, by name.
func contentsOf(t *testing.T, programs miniotest.Programs, addresses map[string]string) map[string]contents {
	t.Helper()
	urls := map[string]string{}
	for name, address := range addresses {
		urls[name] = "http://" + address
	}
	mc, all := miniotest.NewClientAt(t, programs, urls), map[string]contents{}
	for name, address := range addresses {
		all[name] = contents{t, s3(t, address), mc, name}
	}
	return all
}

// put stores an object and returns the id of the version.
func (c contents) put(bucket, key, content string, options minio.PutObjectOptions) string {
	c.t.Helper()
	info, err := c.client.PutObject(c.t.Context(), bucket, key, strings.NewReader(content), int64(len(content)), options)
	if err != nil {
		c.t.Fatalf("put %s/%q: %v", bucket, key, err)
	}
	return info.VersionID
}

func (c contents) remove(bucket, key, version string) {
	c.t.Helper()
	if err := c.client.RemoveObject(c.t.Context(), bucket, key, minio.RemoveObjectOptions{VersionID: version}); err != nil {
		c.t.Fatal(err)
	}
}

func (c contents) bucket(name string, options minio.MakeBucketOptions) {
	c.t.Helper()
	if err := c.client.MakeBucket(c.t.Context(), name, options); err != nil {
		c.t.Fatal(err)
	}
}

// fill stores one of each that there may be, and so many objects of 10 KiB besides.
func (c contents) fill(objects int) {
	c.t.Helper()
	c.plain()
	c.versioned()
	c.locked()
	c.denied()
	c.people()
	fillBucket(c.t, c.client.EndpointURL().Host, "many", objects)
}

// rich is with everything that can be stored with an object.
func rich() minio.PutObjectOptions {
	return minio.PutObjectOptions{
		ContentType: "text/html; charset=utf-8", ContentEncoding: "gzip", ContentDisposition: `attachment; filename="a b.html"`, CacheControl: "max-age=60",
		UserMetadata: map[string]string{"Colour": "blue, green", "Note": "Grüße"}, UserTags: map[string]string{"team": "a b", "x": "y=z"},
	}
}

func (c contents) plain() {
	c.t.Helper()
	c.bucket("plain", minio.MakeBucketOptions{})
	c.put("plain", "empty", "", rich())
	for _, key := range []string{
		"a b+c%20d&e=f?g#h", "äöü/日本語/🙂", "dir/", "dir/file", "quote'\"<>&", "tab\there", "\x01control", "new\nline", "back`tick{}|^~[]",
		"e\u0301", "\u00e9", "trailing ", "~", "\U0010ffff", strings.Repeat("long/", 150) + strings.Repeat("x", 200),
	} {
		content := "content of " + key
		if strings.HasSuffix(key, "/") {
			content = ""
		}
		c.put("plain", key, content, rich())
	}
	c.put("plain", "parts", strings.Repeat("0123456789abcdef", 12<<16), minio.PutObjectOptions{PartSize: 5 << 20, UserMetadata: map[string]string{"Parts": "3"}})
	core := minio.Core{Client: c.client}
	upload, err := core.NewMultipartUpload(c.t.Context(), "plain", "unfinished", minio.PutObjectOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := core.PutObjectPart(c.t.Context(), "plain", "unfinished", upload, 1, strings.NewReader("part"), 4, minio.PutObjectPartOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c contents) versioned() {
	c.t.Helper()
	c.bucket("versioned", minio.MakeBucketOptions{})
	c.put("versioned", "older than versions", "null", minio.PutObjectOptions{})
	if err := c.client.EnableVersioning(c.t.Context(), "versioned"); err != nil {
		c.t.Fatal(err)
	}
	for i := range 3 {
		c.put("versioned", "overwritten", fmt.Sprint("content ", i), rich())
	}
	c.put("versioned", "deleted", "content", rich())
	c.remove("versioned", "deleted", "")
	c.remove("versioned", "never there", "")
	first := c.put("versioned", "one version removed", "x", minio.PutObjectOptions{})
	c.put("versioned", "one version removed", "y", minio.PutObjectOptions{})
	c.remove("versioned", "one version removed", first)
	c.put("versioned", "deleted and back", "x", minio.PutObjectOptions{})
	c.remove("versioned", "deleted and back", "")
	c.put("versioned", "deleted and back", "y", minio.PutObjectOptions{})
}

func (c contents) locked() {
	c.t.Helper()
	c.bucket("locked", minio.MakeBucketOptions{ObjectLocking: true})
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	c.put("locked", "governance", "x", minio.PutObjectOptions{Mode: minio.Governance, RetainUntilDate: until})
	c.put("locked", "compliance", "x", minio.PutObjectOptions{Mode: minio.Compliance, RetainUntilDate: until})
	c.put("locked", "on hold", "x", minio.PutObjectOptions{LegalHold: minio.LegalHoldEnabled})
	c.put("locked", "free", "x", minio.PutObjectOptions{})
	mode, days, unit := minio.Governance, uint(1), minio.Days
	if err := c.client.SetBucketObjectLockConfig(c.t.Context(), "locked", &mode, &days, &unit); err != nil {
		c.t.Fatal(err)
	}
}

// denied is a bucket in which nobody but root may do anything, with settings.
func (c contents) denied() {
	c.t.Helper()
	c.bucket("denied", minio.MakeBucketOptions{})
	c.put("denied", "key", "x", minio.PutObjectOptions{})
	c.put("denied", "tmp/new", "x", minio.PutObjectOptions{})
	const policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":{"AWS":["*"]},"Action":["s3:*"],"Resource":["arn:aws:s3:::denied/*"]}]}`
	life := lifecycle.NewConfiguration()
	life.Rules = []lifecycle.Rule{{ID: "old", Status: "Enabled", RuleFilter: lifecycle.Filter{Prefix: "tmp/"}, Expiration: lifecycle.Expiration{Days: 30}}}
	team, err := tags.NewTags(map[string]string{"team": "a b"}, false)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, err := range []error{
		c.client.SetBucketLifecycle(c.t.Context(), "denied", life), c.client.SetBucketTagging(c.t.Context(), "denied", team), c.client.SetBucketPolicy(c.t.Context(), "denied", policy),
	} {
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// people are a policy, users, a group and a service account.
func (c contents) people() {
	c.t.Helper()
	policy := filepath.Join(c.t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(writerPolicy), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.mc.Run("admin", "policy", "create", c.name, "own", policy)
	for _, user := range []string{"writer", "member", "disabled"} {
		c.mc.Run("admin", "user", "add", c.name, user, "secret-"+user)
	}
	c.mc.Run("admin", "policy", "attach", c.name, "own", "--user", "writer")
	c.mc.Run("admin", "user", "disable", c.name, "disabled")
	c.mc.Run("admin", "group", "add", c.name, "writers", "member")
	c.mc.Run("admin", "policy", "attach", c.name, "own", "--group", "writers")
	c.mc.Run("admin", "user", "svcacct", "add", "--access-key", accountKey, "--secret-key", accountSecret, c.name, "writer")
}

// buckets are their names, without that of what a client may have deleted while EKCO was dead.
func (c contents) buckets() (names []string) {
	c.t.Helper()
	all, err := c.client.ListBuckets(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, bucket := range all {
		if bucket.Name != "ekco-set-aside" {
			names = append(names, bucket.Name)
		}
	}
	slices.Sort(names)
	return names
}

// same fails unless the judge, and a client, find the same on both sides, in all buckets but
// some.
func (c contents) same(other contents, but ...string) {
	c.t.Helper()
	if ours, theirs := c.buckets(), other.buckets(); !slices.Equal(ours, theirs) {
		c.t.Errorf("%s has the buckets %q, and %s has %q", c.name, ours, other.name, theirs)
		return
	}
	for _, bucket := range c.buckets() {
		if slices.Contains(but, bucket) {
			continue
		}
		if ours, theirs := c.mc.Versions(c.name+"/"+bucket), c.mc.Versions(other.name+"/"+bucket); !slices.Equal(ours, theirs) {
			c.t.Errorf("mc lists of bucket %s\n%+v\non %s, and on %s\n%+v", bucket, ours, c.name, other.name, theirs)
		}
		if diff := c.mc.Diff(c.name+"/"+bucket, other.name+"/"+bucket); diff != "" {
			c.t.Errorf("mc diff of bucket %s is\n%s", bucket, diff)
		}
		if ours, theirs := c.settings(bucket), other.settings(bucket); !maps.Equal(ours, theirs) {
			c.t.Errorf("bucket %s has the settings\n%v\non %s, and on %s\n%v", bucket, ours, c.name, other.name, theirs)
		}
		c.sameObjects(other, bucket)
	}
	for _, list := range peopleLists {
		if ours, theirs := c.admin(list), other.admin(list); ours != theirs || ours == "" {
			c.t.Errorf("mc admin %q says\n%s\nof %s, and of %s\n%s", list, ours, c.name, other.name, theirs)
		}
	}
}

// peopleLists are what mc can list of users and the like.
var peopleLists = [][]string{{"user", "list"}, {"policy", "list"}, {"group", "list"}, {"user", "svcacct", "list"}}

// told is what the judge tells of the versions in some buckets, and of users and the like.
func (c contents) told(buckets ...string) string {
	c.t.Helper()
	var text strings.Builder
	for _, bucket := range buckets {
		fmt.Fprintf(&text, "%s: %+v\n", bucket, c.mc.Versions(c.name+"/"+bucket))
	}
	for _, list := range peopleLists {
		fmt.Fprintf(&text, "%q: %s\n", list, c.admin(list))
	}
	return text.String()
}

// admin is what mc lists of users and the like.
func (c contents) admin(list []string) string {
	c.t.Helper()
	args := append(append([]string{"admin"}, list...), "--json", c.name)
	if slices.Contains(list, "svcacct") {
		args = append(args, "writer")
	}
	lines := strings.Split(strings.TrimSpace(c.mc.Run(args...)), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// settings are those of a bucket, as a client is told them.
func (c contents) settings(bucket string) map[string]string {
	c.t.Helper()
	ctx, all := c.t.Context(), map[string]string{}
	told := func(name string, value any, err error) {
		all[name] = fmt.Sprintf("%+v", value)
		if err != nil {
			all[name] = minio.ToErrorResponse(err).Code
		}
	}
	policy, err := c.client.GetBucketPolicy(ctx, bucket)
	told("policy", policy, err)
	versioning, err := c.client.GetBucketVersioning(ctx, bucket)
	told("versioning", versioning, err)
	team, err := c.client.GetBucketTagging(ctx, bucket)
	told("tags", team, err)
	life, err := c.client.GetBucketLifecycle(ctx, bucket)
	if err == nil {
		told("lifecycle", life.Rules, nil)
	} else {
		told("lifecycle", nil, err)
	}
	enabled, mode, days, unit, err := c.client.GetObjectLockConfig(ctx, bucket)
	told("lock", enabled, err)
	if err == nil && mode != nil {
		told("retention", fmt.Sprint(*mode, *days, *unit), nil)
	}
	return all
}

// readObjects is how many versions of a bucket are read on both sides.
const readObjects = 1000

// sameObjects compares what a reader is told of each version, and its content, up to
// [readObjects] of them.
func (c contents) sameObjects(other contents, bucket string) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	read := 0
	for object := range c.client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Recursive: true, WithVersions: true}) {
		if object.Err != nil {
			c.t.Fatal(object.Err)
		}
		if read++; read > readObjects {
			return
		}
		if object.IsDeleteMarker {
			continue
		}
		if ours, theirs := c.object(bucket, object.Key, object.VersionID), other.object(bucket, object.Key, object.VersionID); ours != theirs {
			c.t.Errorf("%s/%q is\n%.2000s\non %s, and on %s\n%.2000s", bucket, object.Key, ours, c.name, other.name, theirs)
		}
	}
}

// object is what a reader is told of a version, and its content.
func (c contents) object(bucket, key, version string) string {
	c.t.Helper()
	object, info, headers, err := minio.Core{Client: c.client}.GetObject(c.t.Context(), bucket, key, minio.GetObjectOptions{VersionID: version})
	if err != nil {
		return err.Error()
	}
	defer object.Close()
	content, err := io.ReadAll(object)
	if err != nil {
		return err.Error()
	}
	for _, other := range []string{"Date", "X-Amz-Request-Id", "X-Amz-Id-2", "X-Ratelimit-Limit", "X-Ratelimit-Remaining"} {
		delete(headers, other)
	}
	labels, err := c.client.GetObjectTagging(c.t.Context(), bucket, key, minio.GetObjectTaggingOptions{VersionID: version})
	return fmt.Sprintln(info.ETag, headers, labels, err, string(content))
}
