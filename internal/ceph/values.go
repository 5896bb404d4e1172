package ceph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// maxAnswer is the maximum size of one answer, in bytes. For a thousand OSDs it has about 1 MiB.
const maxAnswer = 8 << 20

var errNoValues = errors.New("its output is not a sequence of JSON values, each on its own line")

// values splits ceph's output into JSON objects and arrays. Each ends with a newline, with only white space
// between them; anything else is an error.
type values struct {
	begun    []byte
	depth    int
	quoted   bool
	escaped  bool
	complete bool
}

// between reports whether no value has begun.
func (v *values) between() bool { return len(v.begun) == 0 }

// next takes one byte, and returns the value that ends with it, if one does.
func (v *values) next(b byte) (value []byte, err error) {
	switch {
	case v.complete:
		return v.end(b)
	case v.between() && bytes.IndexByte([]byte(" \t\r\n"), b) >= 0:
		return nil, nil
	case v.between() && b != '{' && b != '[':
		return nil, errNoValues
	case len(v.begun) >= maxAnswer:
		return nil, fmt.Errorf("an answer has more than %d KiB", maxAnswer>>10)
	}
	v.begun = append(v.begun, b)
	v.follow(b)
	return nil, nil
}

// follow keeps track of strings and nesting.
func (v *values) follow(b byte) {
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

// end returns the value if the next byte is a newline.
func (v *values) end(b byte) ([]byte, error) {
	value := quoteBareNumbers(v.begun)
	*v = values{}
	if b != '\n' || !json.Valid(value) {
		return nil, errNoValues
	}
	return value, nil
}

// bareNumber matches JSON strings, which are kept, and the bare words inf and nan: Ceph 18.2.0 to
// 18.2.4 writes inf into fields of pools in "ceph osd dump".
var bareNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[-+]?\b(?:inf|nan)\b`)

// quoteBareNumbers quotes inf and nan, so that answers can be parsed if EKCO does not use the field. If it
// does, parsing the number fails.
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
