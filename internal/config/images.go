package config

import (
	"fmt"
	"strings"
)

// Images are the settings of images that EKCO replaces in new pods.
type Images struct {
	PodImageOverrides ImageOverrides
}

func (i *Images) keys() []key {
	return []key{
		{
			name: "pod_image_overrides", value: &i.PodImageOverrides, does: "replace images in new pods",
			help: "original=override pairs, separated by commas, of images to replace in new pods",
		},
	}
}

// ImageOverride replaces the image Original by Override in new pods.
type ImageOverride struct{ Original, Override string }

// String returns "original=override".
func (o ImageOverride) String() string { return o.Original + "=" + o.Override }

// ImageOverrides are overrides; the first that matches an image applies.
type ImageOverrides []ImageOverride

// String returns the pairs, separated by commas.
func (o ImageOverrides) String() string {
	texts := make([]string, 0, len(o))
	for _, override := range o {
		texts = append(texts, override.String())
	}
	return strings.Join(texts, ",")
}

func (*ImageOverrides) kind() string { return "pairs" }

func (o *ImageOverrides) read(text string) (err error) {
	*o, err = parseOverrides(text)
	return err
}

func parseOverrides(text string) (ImageOverrides, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var overrides ImageOverrides
	for entry := range strings.SplitSeq(text, ",") {
		original, override, _ := strings.Cut(strings.TrimSpace(entry), "=")
		if original == "" || override == "" || strings.Contains(override, "=") {
			return nil, expectedError(fmt.Sprintf("original=override pairs separated by commas, each with exactly one =; %q is not such a pair", entry))
		}
		overrides = append(overrides, ImageOverride{Original: original, Override: override})
	}
	return overrides, nil
}
