package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// expectedError is what a value should have been, in words.
type expectedError string

func (e expectedError) Error() string { return "want " + string(e) }

// ownType is a pointer to a value of a type of this package.
type ownType interface {
	// String returns the text that read reads back.
	String() string
	// read sets the value from text, or returns an [expectedError].
	read(text string) error
	// kind names the type in the documentation.
	kind() string
}

// parse reads text into the value at into.
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
	case ownType:
		return into.read(text)
	default:
		return fmt.Errorf("cannot read a value into %T", into)
	}
	return nil
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
	case ownType:
		return value.String()
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

func positive(value any) string {
	if d, ok := value.(*time.Duration); ok && *d <= 0 {
		return "a duration above zero, like 5m"
	}
	return ""
}

// atLeastASecond is for the intervals of checks of the cluster. Without a minimum, the checks could become a busy loop.
func atLeastASecond(value any) string {
	if d, ok := value.(*time.Duration); ok && *d < time.Second {
		return "a duration of at least 1s"
	}
	return ""
}

// label matches the name of a namespace (RFC 1123).
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// namespace allows an empty name: then EKCO looks in no namespace.
func namespace(value any) string {
	if name, ok := value.(*string); ok && *name != "" && !label.MatchString(*name) {
		return "the name of a namespace, like projectcontour, or nothing"
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

// read parses and checks one value. If neither the type nor the key accepts the text, the error says what the key
// expects, because that is more precise.
func (k key) read(text string) error {
	err := parse(text, k.value)
	if k.check != nil {
		if expected := k.check(k.value); expected != "" {
			return expectedError(expected)
		}
	}
	return err
}
