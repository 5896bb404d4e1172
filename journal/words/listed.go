package words

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// listFields returns a text for an event without a row: its type, its subject, and the fields of its payload in their
// order.
func listFields(e journal.Event) string {
	text := fmt.Sprintf("%s about %s", e.Type, Object(e.Subject))
	fields, ok := fields(e.Payload)
	switch {
	case !ok:
		return text + ": " + string(e.Payload)
	case len(fields) == 0:
		return text
	}
	return text + ": " + strings.Join(fields, ", ")
}

// fields returns the fields of a JSON object, each as name=value.
func fields(payload []byte) ([]string, bool) {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	var fields []string
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, false
		}
		fields = append(fields, fmt.Sprintf("%v=%s", name, value))
	}
	return fields, true
}
