package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"sync"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// SettingName names one of the settings of a bucket.
type SettingName string

// The settings of a bucket.
const (
	Versioning   SettingName = "versioning"
	ObjectLock   SettingName = "object lock"
	Policy       SettingName = "policy"
	BucketTags   SettingName = "tags"
	Lifecycle    SettingName = "lifecycle"
	Encrypting   SettingName = "encryption"
	Notification SettingName = "notification"
	Replication  SettingName = "replication"
	CORS         SettingName = "cors"
	Quota        SettingName = "quota"
	// Region is read-only: it belongs to the server.
	Region SettingName = "region"
)

// SettingNames returns all settings in the order in which they can be set.
func SettingNames() []SettingName {
	return []SettingName{Region, Versioning, ObjectLock, Policy, BucketTags, Lifecycle, Encrypting, Notification, Replication, CORS, Quota}
}

// Same reports whether two values of a setting are equivalent. A server writes the sets in a policy
// in any order.
func (name SettingName) Same(one, other string) bool {
	return reflect.DeepEqual(name.read(one), name.read(other))
}

// Mark is a short hash of a value, equal for equivalent values.
func (name SettingName) Mark(value string) string { return mark(name.read(value)) }

// read returns a value with its sets in one order.
func (name SettingName) read(value string) (document any) {
	if name != Policy || json.Unmarshal([]byte(value), &document) != nil {
		return value
	}
	unordered(document)
	return document
}

// Settings are the values that are set, as the server writes them: XML, or JSON for a policy and a
// quota.
type Settings map[SettingName]string

// VersioningEnabled is the value of [Versioning] that keeps all versions.
const VersioningEnabled = `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>`

// resources are the names of settings in S3's API.
var resources = map[SettingName]string{
	Versioning: "versioning", ObjectLock: "object-lock", Policy: "policy", BucketTags: "tagging", Lifecycle: "lifecycle",
	Encrypting: "encryption", Notification: "notification", Replication: "replication", CORS: "cors", Region: "location",
}

// unset are the codes of errors for a setting that is not set.
var unset = map[string]bool{
	"ObjectLockConfigurationNotFoundError": true, "NoSuchBucketPolicy": true, "NoSuchTagSet": true,
	"NoSuchLifecycleConfiguration": true, "ServerSideEncryptionConfigurationNotFoundError": true,
	"ReplicationConfigurationNotFoundError": true, "NoSuchCORSConfiguration": true, "NotImplemented": true,
	"XMinioAdminNoSuchQuotaConfiguration": true,
}

// Settings implements [Source].
func (c *Client) Settings(ctx context.Context, bucket string) (Settings, error) {
	var mu sync.Mutex
	var errs []error
	settings := make(Settings)
	parallel.Each(len(SettingNames()), SettingNames(), func(name SettingName) {
		value, err := c.setting(ctx, bucket, name)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, failed("read the "+string(name)+" of bucket", bucket, "", err))
		} else if value != "" {
			settings[name] = value
		}
	})
	if len(errs) > 0 {
		return nil, errs[0] // the others usually have the same cause
	}
	return settings, nil
}

// setting returns the value of one setting, or "".
func (c *Client) setting(ctx context.Context, bucket string, name SettingName) (string, error) {
	if name == Quota {
		return c.quota(ctx, bucket)
	}
	answer, err := c.request(ctx, http.MethodGet, "/"+bucket+"/", url.Values{resources[name]: {""}}.Encode(), nil)
	if unset[minio.ToErrorResponse(err).Code] {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if name != Policy && empty(answer) {
		return "", nil
	}
	return string(bytes.TrimSpace(answer)), nil
}

// empty reports whether an XML document has no content.
func empty(document []byte) bool {
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth++; depth > 1 {
				return false
			}
		case xml.CharData:
			if len(bytes.TrimSpace(token)) > 0 && depth > 0 {
				return false
			}
		}
	}
}

// quota returns the quota of a bucket, or "".
func (c *Client) quota(ctx context.Context, bucket string) (string, error) {
	answer, err := c.request(ctx, http.MethodGet, admin+"/get-bucket-quota", url.Values{"bucket": {bucket}}.Encode(), nil)
	if unset[minio.ToErrorResponse(err).Code] {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var quota struct{ Quota, Size, Rate, Requests uint64 }
	if err := json.Unmarshal(answer, &quota); err != nil {
		return "", err
	}
	if quota.Quota == 0 && quota.Size == 0 && quota.Rate == 0 && quota.Requests == 0 {
		return "", nil
	}
	return string(answer), nil
}

// CreateBucket implements [Target].
func (c *Client) CreateBucket(ctx context.Context, bucket string, locked bool) error {
	err := c.core.MakeBucket(ctx, bucket, minio.MakeBucketOptions{ObjectLocking: locked})
	if code := minio.ToErrorResponse(err).Code; err != nil && code != "BucketAlreadyOwnedByYou" && code != "BucketAlreadyExists" {
		return failed("create bucket", bucket, "", err)
	}
	return nil
}

// RemoveBucket implements [Target].
func (c *Client) RemoveBucket(ctx context.Context, bucket string) error {
	err := c.core.RemoveBucket(ctx, bucket)
	if err = explain(err); err != nil && !errors.Is(err, ErrGone) {
		return failed("remove bucket", bucket, "", err)
	}
	return nil
}

// removable are the settings that a DELETE request removes.
var removable = map[SettingName]bool{Policy: true, BucketTags: true, Lifecycle: true, Encrypting: true, Replication: true, CORS: true}

// Set implements [Target].
func (c *Client) Set(ctx context.Context, bucket string, name SettingName, value string) error {
	err := c.set(ctx, bucket, name, value)
	if err != nil {
		return failed("set the "+string(name)+" of bucket", bucket, "", err)
	}
	return nil
}

func (c *Client) set(ctx context.Context, bucket string, name SettingName, value string) error {
	method, path, query := http.MethodPut, "/"+bucket+"/", url.Values{resources[name]: {""}}
	switch {
	case name == Region:
		return ErrNotOffered
	case name == Quota:
		path, query = admin+"/set-bucket-quota", url.Values{"bucket": {bucket}}
		if value == "" {
			value = `{"quota":0}`
		}
	case value == "" && removable[name]:
		method = http.MethodDelete
	case value == "" && name == Notification:
		value = `<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></NotificationConfiguration>`
	case value == "":
		return ErrNotOffered // versioning can only be suspended, object lock not even that
	}
	_, err := c.request(ctx, method, path, query.Encode(), []byte(value))
	return err
}
