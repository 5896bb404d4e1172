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

// Same reports whether two values of a setting are equivalent. It ignores the order of lists in a policy, because
// servers write them in any order.
func (name SettingName) Same(one, other string) bool {
	return reflect.DeepEqual(name.read(one), name.read(other))
}

// Mark returns a short hash of a value. The hash is equal for equivalent values.
func (name SettingName) Mark(value string) string { return shortHash(name.read(value)) }

// read returns a value for comparison: a policy is parsed and its lists are sorted.
func (name SettingName) read(value string) (document any) {
	if name != Policy || json.Unmarshal([]byte(value), &document) != nil {
		return value
	}
	sortLists(document)
	return document
}

// Settings are the configured values as the server writes them: JSON for a policy or quota, XML for the other settings.
type Settings map[SettingName]string

// VersioningEnabled is the value of [Versioning] that keeps all versions.
const VersioningEnabled = `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>`

// apiNames are the names of the settings in the S3 API.
var apiNames = map[SettingName]string{
	Versioning: "versioning", ObjectLock: "object-lock", Policy: "policy", BucketTags: "tagging", Lifecycle: "lifecycle",
	Encrypting: "encryption", Notification: "notification", Replication: "replication", CORS: "cors", Region: "location",
}

// unsetCodes are the error codes for a setting that is not set.
var unsetCodes = map[string]bool{
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
			errs = append(errs, addContext("read the "+string(name)+" of bucket", bucket, "", err))
		} else if value != "" {
			settings[name] = value
		}
	})
	if len(errs) > 0 {
		return nil, errs[0] // the others usually have the same cause
	}
	return settings, nil
}

// setting returns the value of one setting, or "" if it is not set.
func (c *Client) setting(ctx context.Context, bucket string, name SettingName) (string, error) {
	if name == Quota {
		return c.quota(ctx, bucket)
	}
	answer, err := c.request(ctx, http.MethodGet, "/"+bucket+"/", url.Values{apiNames[name]: {""}}.Encode(), nil)
	if unsetCodes[minio.ToErrorResponse(err).Code] {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if name != Policy && isEmptyXML(answer) {
		return "", nil
	}
	return string(bytes.TrimSpace(answer)), nil
}

// isEmptyXML reports whether an XML document has no content.
func isEmptyXML(document []byte) bool {
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

// quota returns the quota of a bucket, or "" if it has none.
func (c *Client) quota(ctx context.Context, bucket string) (string, error) {
	answer, err := c.request(ctx, http.MethodGet, adminPath+"/get-bucket-quota", url.Values{"bucket": {bucket}}.Encode(), nil)
	if unsetCodes[minio.ToErrorResponse(err).Code] {
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
		return addContext("create bucket", bucket, "", err)
	}
	return nil
}

// RemoveBucket implements [Target].
func (c *Client) RemoveBucket(ctx context.Context, bucket string) error {
	err := c.core.RemoveBucket(ctx, bucket)
	if err = explain(err); err != nil && !errors.Is(err, ErrGone) {
		return addContext("remove bucket", bucket, "", err)
	}
	return nil
}

// deletableSettings are the settings that a DELETE request can remove.
var deletableSettings = map[SettingName]bool{Policy: true, BucketTags: true, Lifecycle: true, Encrypting: true, Replication: true, CORS: true}

// Set implements [Target].
func (c *Client) Set(ctx context.Context, bucket string, name SettingName, value string) error {
	err := c.set(ctx, bucket, name, value)
	if err != nil {
		return addContext("set the "+string(name)+" of bucket", bucket, "", err)
	}
	return nil
}

func (c *Client) set(ctx context.Context, bucket string, name SettingName, value string) error {
	method, path, query := http.MethodPut, "/"+bucket+"/", url.Values{apiNames[name]: {""}}
	switch {
	case name == Region:
		return ErrNotOffered
	case name == Quota:
		path, query = adminPath+"/set-bucket-quota", url.Values{"bucket": {bucket}}
		if value == "" {
			value = `{"quota":0}`
		}
	case value == "" && deletableSettings[name]:
		method = http.MethodDelete
	case value == "" && name == Notification:
		value = `<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></NotificationConfiguration>`
	case value == "":
		return ErrNotOffered // a server can suspend versioning but not remove it, and cannot disable object lock
	}
	_, err := c.request(ctx, method, path, query.Encode(), []byte(value))
	return err
}
