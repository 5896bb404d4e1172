package ceph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// maxAnswer is the maximum size of one answer, in bytes. For a thousand OSDs an answer has about 1 MiB.
const maxAnswer = 8 << 20

var errNoValues = errors.New("its output is not a sequence of JSON values, each on its own line")

// values splits ceph's output into JSON objects and arrays. Each value ends with a newline. Only white space may be
// between values; anything else is an error.
type values struct {
	partial  []byte
	depth    int
	quoted   bool
	escaped  bool
	complete bool
}

// isEmpty reports whether no value has begun.
func (v *values) isEmpty() bool { return len(v.partial) == 0 }

// next takes one byte of output. If a value ends with this byte, next returns the value, otherwise nil.
func (v *values) next(b byte) (value []byte, err error) {
	switch {
	case v.complete:
		return v.end(b)
	case v.isEmpty() && bytes.IndexByte([]byte(" \t\r\n"), b) >= 0:
		return nil, nil
	case v.isEmpty() && b != '{' && b != '[':
		return nil, errNoValues
	case len(v.partial) >= maxAnswer:
		return nil, fmt.Errorf("an answer has more than %d KiB", maxAnswer>>10)
	}
	v.partial = append(v.partial, b)
	v.trackNesting(b)
	return nil, nil
}

// trackNesting keeps track of strings and nesting.
func (v *values) trackNesting(b byte) {
	switch {
	case v.escaped:
		v.escaped = false
	case v.quoted && b == '\\':
		v.escaped = true
	case b == '"':
		v.quoted = !v.quoted
	case v.quoted:
	case b == '{', b == '[':
		v.depth++
	case b == '}', b == ']':
		v.depth--
		v.complete = v.depth == 0
	}
}

// end returns the value if b is the newline after it.
func (v *values) end(b byte) ([]byte, error) {
	value := quoteBareNumbers(v.partial)
	*v = values{}
	if b != '\n' || !json.Valid(value) {
		return nil, errNoValues
	}
	return value, nil
}

// bareNumber matches the bare words inf and nan, and also JSON strings, so that words inside a string are kept. Ceph
// 18.2.0 to 18.2.4 writes inf into fields of pools in "ceph osd dump".
var bareNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[-+]?\b(?:inf|nan)\b`)

// quoteBareNumbers quotes inf and nan, so that the JSON parser accepts the answer. If EKCO uses the field, parsing
// its number still fails.
func quoteBareNumbers(answer []byte) []byte {
	if json.Valid(answer) {
		return answer
	}
	return bareNumber.ReplaceAllFunc(answer, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return slices.Concat([]byte(`"`), found, []byte(`"`))
	})
}
