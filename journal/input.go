package journal

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// InputOf returns what the action needs to be planned, in the type of its kind; the
// zero value if it needs nothing.
func InputOf[T any](request ActionRequested) (input T, err error) {
	switch in := request.Input.(type) {
	case nil:
	case json.RawMessage:
		if err := json.Unmarshal(in, &input); err != nil {
			return input, fmt.Errorf("read the input of a %s: %w", request.Kind, err)
		}
	case T:
		return in, nil
	default:
		return input, fmt.Errorf("the input of a %s is %T, want %T", request.Kind, in, input)
	}
	return input, nil
}

// UnmarshalJSON reads a request of any version, also one in a record that says no
// version: that of an adopted action, of the mirror, of a snapshot. Up to version 1,
// what is in the input now stood beside the other members.
func (a *ActionRequested) UnmarshalJSON(raw []byte) error {
	type plain ActionRequested
	var request struct {
		plain
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		return err
	}
	*a = ActionRequested(request.plain)
	read, version1 := version1Inputs[a.Kind]
	switch {
	case version1 && request.Input == nil:
		return a.take(read(raw))
	case version1:
		return a.take(read(request.Input))
	case request.Input != nil:
		a.Input = request.Input
	}
	return nil
}

// take sets the input; one that says nothing is none.
func (a *ActionRequested) take(input any, err error) error {
	if err != nil {
		return fmt.Errorf("read the input of a %s: %w", a.Kind, err)
	}
	if !reflect.ValueOf(input).IsZero() {
		a.Input = input
	}
	return nil
}

// version1Inputs read the inputs of the kinds of action that version 1 had. Those of
// later kinds stay as they are until [InputOf] reads them.
var version1Inputs = map[ActionKind]func([]byte) (any, error){
	ActionClearNode: inputFrom[ClearInput],
	ActionPurgeNode: inputFrom[PurgeInput],
}

func inputFrom[T any](raw []byte) (any, error) {
	var input T
	err := json.Unmarshal(raw, &input)
	return input, err
}
