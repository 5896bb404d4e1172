package s3

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/tags"
)

// Annotate implements [Target].
func (c *Client) Annotate(ctx context.Context, bucket string, v Version, old Attributes) error {
	var errs []error
	if !maps.Equal(v.Attributes.Tags, old.Tags) {
		errs = append(errs, putError("set the tags of object", bucket, v.Key, c.tag(ctx, bucket, v)))
	}
	if !v.Attributes.Retention.Equal(old.Retention) {
		errs = append(errs, putError("set the retention of object", bucket, v.Key, c.retain(ctx, bucket, v)))
	}
	if v.Attributes.LegalHold != old.LegalHold {
		errs = append(errs, putError("set the legal hold of object", bucket, v.Key, c.hold(ctx, bucket, v)))
	}
	return errors.Join(errs...)
}

// Equal reports whether both retentions are the same. A nil pointer means no retention.
func (r *Retention) Equal(other *Retention) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.Mode == other.Mode && r.Until.Equal(other.Until)
}

func (c *Client) tag(ctx context.Context, bucket string, v Version) error {
	if len(v.Attributes.Tags) == 0 {
		return c.noRetry.RemoveObjectTagging(ctx, bucket, v.Key, minio.RemoveObjectTaggingOptions{VersionID: v.ID})
	}
	set, err := tags.NewTags(v.Attributes.Tags, true)
	if err != nil {
		return err
	}
	return c.noRetry.PutObjectTagging(ctx, bucket, v.Key, set, minio.PutObjectTaggingOptions{VersionID: v.ID})
}

func (c *Client) retain(ctx context.Context, bucket string, v Version) error {
	options := minio.PutObjectRetentionOptions{VersionID: v.ID, GovernanceBypass: true}
	if retention := v.Attributes.Retention; retention != nil {
		// An expired retention protects nothing, and servers refuse to set it.
		if retention.Until.Before(time.Now()) {
			return nil
		}
		mode := minio.RetentionMode(retention.Mode)
		options.Mode, options.RetainUntilDate = &mode, &retention.Until
	}
	return c.noRetry.PutObjectRetention(ctx, bucket, v.Key, options)
}

func (c *Client) hold(ctx context.Context, bucket string, v Version) error {
	status := minio.LegalHoldDisabled
	if v.Attributes.LegalHold {
		status = minio.LegalHoldEnabled
	}
	return c.noRetry.PutObjectLegalHold(ctx, bucket, v.Key, minio.PutObjectLegalHoldOptions{VersionID: v.ID, Status: &status})
}
