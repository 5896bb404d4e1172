package config

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// expectedError says what a value should have been, in words.
type expectedError string

func (e expectedError) Error() string { return "want " + string(e) }

// parse reads text into the value that into points to.
func parse(text string, into any) error {
	var err error
	switch into := into.(type) {
	case *string:
		*into = text
	case *bool:
		if *into, err = strconv.ParseBool(strings.TrimSpace(text)); err != nil {
			return expectedError("true or false")
		}
	case *int:
		if *into, err = strconv.Atoi(strings.TrimSpace(text)); err != nil || *into < 0 {
			return expectedError("a whole number of at least 0")
		}
	case *time.Duration:
		if *into, err = time.ParseDuration(strings.TrimSpace(text)); err != nil || *into < 0 {
			return expectedError("a duration with a unit, like 90s, 5m or 1h")
		}
	case *Bytes:
		if *into, err = parseBytes(strings.TrimSpace(text)); err != nil {
			return expectedError("a size like 512Mi or 2Gi")
		}
	case *MaxUnknown:
		if *into, err = parseMaxUnknown(strings.TrimSpace(text)); err != nil {
			return expectedError("a number of nodes like 3, or a percentage from 0% to 100%")
		}
	case *[]ImageOverride:
		*into, err = parseOverrides(text)
		return err
	default:
		return fmt.Errorf("cannot read a value into %T", into)
	}
	return nil
}

func parseBytes(text string) (Bytes, error) {
	unit := int64(1)
	for i, name := range byteUnits[1:] {
		if digits, found := strings.CutSuffix(text, name); found {
			text, unit = digits, 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("read %q: not a size", text)
	}
	return Bytes(n * unit), nil
}

func parseOverrides(text string) ([]ImageOverride, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var overrides []ImageOverride
	for entry := range strings.SplitSeq(text, ",") {
		original, override, _ := strings.Cut(strings.TrimSpace(entry), "=")
		if original == "" || override == "" || strings.Contains(override, "=") {
			return nil, expectedError(fmt.Sprintf("original=override pairs separated by commas, each with exactly one =; %q is none", entry))
		}
		overrides = append(overrides, ImageOverride{Original: original, Override: override})
	}
	return overrides, nil
}

// format returns the text that parse reads back.
func format(value any) string {
	switch value := value.(type) {
	case *string:
		return *value
	case *bool:
		return strconv.FormatBool(*value)
	case *int:
		return strconv.Itoa(*value)
	case *time.Duration:
		return formatDuration(*value)
	case *Bytes:
		return value.String()
	case *MaxUnknown:
		return value.String()
	case *[]ImageOverride:
		texts := make([]string, 0, len(*value))
		for _, override := range *value {
			texts = append(texts, override.String())
		}
		return strings.Join(texts, ",")
	}
	return fmt.Sprint(value)
}

// formatDuration drops the zero units that time.Duration appends: 1h0m0s is 1h.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func atLeastOne(value any) string {
	if n, ok := value.(*int); ok && *n < 1 {
		return "a whole number of at least 1"
	}
	return ""
}

func port(value any) string {
	if n, ok := value.(*int); ok && *n > 65535 {
		return "a port from 0 to 65535"
	}
	return ""
}

func notEmpty(value any) string {
	if text, ok := value.(*string); ok && *text == "" {
		return "a text that is not empty"
	}
	return ""
}

func labelPair(value any) string {
	text, ok := value.(*string)
	if !ok || *text == "" {
		return ""
	}
	if name, _, found := strings.Cut(*text, "="); !found || name == "" {
		return "a label like key=value"
	}
	return ""
}

func oneOf(words ...string) func(any) string {
	return func(value any) string {
		if text, ok := value.(*string); ok && !slices.Contains(words, strings.ToLower(*text)) {
			return "one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

func address(value any) string {
	text, ok := value.(*string)
	if !ok {
		return ""
	}
	if _, _, err := net.SplitHostPort(*text); err != nil {
		return "an address like :8080 or 127.0.0.1:8080"
	}
	return ""
}

// read parses and checks one value. What the key demands says more than what
// its type demands, so it is what an error names when both fail.
func (k key) read(text string, into any) error {
	err := parse(text, into)
	if k.check != nil {
		if expected := k.check(into); expected != "" {
			return expectedError(expected)
		}
	}
	return err
}
