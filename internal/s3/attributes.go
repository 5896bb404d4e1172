package s3

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

// The headers that carry attributes, by canonical names.
const (
	contentType     = "Content-Type"
	expires         = "Expires"
	lockMode        = "X-Amz-Object-Lock-Mode"
	lockUntil       = "X-Amz-Object-Lock-Retain-Until-Date"
	lockLegalHold   = "X-Amz-Object-Lock-Legal-Hold"
	encryptedBy     = "X-Amz-Server-Side-Encryption"
	encryptedByUser = "X-Amz-Server-Side-Encryption-Customer-Algorithm"
)

// isStoredHeader reports whether the server stores the header with an object and returns it to readers.
func isStoredHeader(header string) bool {
	switch header {
	case contentType, "Content-Encoding", "Content-Disposition", "Content-Language", "Cache-Control":
		return true
	}
	return strings.HasPrefix(header, "X-Amz-Meta-") || strings.HasPrefix(header, "X-Minio-Meta-")
}

// listedAttributes returns the attributes from a listing, or nil if the listing changed or left out an attribute.
func listedAttributes(object *minio.ObjectInfo) *Attributes {
	headers := make(map[string]string, len(object.UserMetadata))
	for name, value := range object.UserMetadata {
		// The server replaces characters that XML cannot represent.
		if strings.ContainsRune(value, utf8.RuneError) {
			return nil
		}
		headers[http.CanonicalHeaderKey(name)] = value
	}
	attributes, err := toAttributes(headers)
	if err != nil {
		return nil
	}
	if len(object.UserTags) > 0 {
		attributes.Tags = object.UserTags
	}
	return &attributes
}

// toAttributes reads attributes from headers.
func toAttributes(headers map[string]string) (Attributes, error) {
	a := Attributes{Headers: make(map[string]string, len(headers)), Expires: headers[expires]}
	for name, value := range headers {
		if isStoredHeader(name) {
			a.Headers[name] = value
		}
	}
	a.LegalHold = headers[lockLegalHold] == string(minio.LegalHoldEnabled)
	a.Encryption = Encryption(headers[encryptedBy])
	if headers[encryptedByUser] != "" {
		a.Encryption = SSEC
	}
	if mode, until := headers[lockMode], headers[lockUntil]; mode != "" && until != "" {
		date, err := time.Parse(time.RFC3339, until)
		if err != nil {
			return Attributes{}, fmt.Errorf("read the time of a retention: %w", err)
		}
		a.Retention = &Retention{Mode: mode, Until: date.UTC().Truncate(time.Second)}
	}
	return a, nil
}

// Describe implements [Source].
func (c *Client) Describe(ctx context.Context, bucket string, v Version) (Attributes, error) {
	stat, err := c.core.StatObject(ctx, bucket, v.Key, minio.StatObjectOptions{VersionID: v.ID})
	if err != nil {
		return Attributes{}, addContext("read the attributes of object", bucket, v.Key, err)
	}
	attributes, err := toAttributes(joinHeaders(stat.Headers))
	if err != nil || stat.UserTagCount == 0 {
		return attributes, err
	}
	tags, err := c.core.GetObjectTagging(ctx, bucket, v.Key, minio.GetObjectTaggingOptions{VersionID: v.ID})
	if err != nil {
		return Attributes{}, addContext("read the tags of object", bucket, v.Key, err)
	}
	attributes.Tags = tags.ToMap()
	return attributes, nil
}

// joinHeaders joins the values of each header to one text.
func joinHeaders(header http.Header) map[string]string {
	headers := make(map[string]string, len(header))
	for name, values := range header {
		headers[name] = strings.Join(values, ",")
	}
	return headers
}

// putOptions returns the options that store a version unchanged.
func putOptions(v Version) minio.PutObjectOptions {
	a := v.Attributes
	headers := a.Headers
	if a.Expires != "" {
		headers = maps.Clone(headers)
		headers[expires] = a.Expires
	}
	options := minio.PutObjectOptions{
		UserMetadata: headers, UserTags: a.Tags,
		// The server compares the ETag instead, so EKCO need not compute a checksum.
		DisableContentSha256: true,
		Internal: minio.AdvancedPutOptions{
			SourceVersionID: v.ID, SourceETag: v.ETag, SourceMTime: v.Modified,
			// With this, the server sends no event and accepts an expired retention. The
			// replication status is not set, because clients would see it.
			ReplicationRequest: true,
		},
	}
	if a.Retention != nil {
		options.Mode, options.RetainUntilDate = minio.RetentionMode(a.Retention.Mode), a.Retention.Until
	}
	if a.LegalHold {
		options.LegalHold = minio.LegalHoldEnabled
	}
	switch a.Encryption {
	case SSES3, SSEKMS:
		// The target uses its own keys, so the keys of the source do not matter.
		options.ServerSideEncryption = encrypt.NewSSE()
	}
	return options
}
