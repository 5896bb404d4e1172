package secrets

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/kube"
)

// secret is a Secret as decoded JSON, so that fields that EKCO does not know do not get lost.
type secret struct {
	ref    kube.Ref
	object map[string]any
	data   map[string]any
}

// decode decodes a Secret. Its errors quote no part of the content.
func decode(ref kube.Ref, raw json.RawMessage) (secret, error) {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return secret{}, fmt.Errorf("read %s: the API's answer is not an object", called(ref))
	}
	data, _ := object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
		object["data"] = data
	}
	return secret{ref, object, data}, nil
}

func called(ref kube.Ref) string { return "Secret " + ref.Namespace + "/" + ref.Name }

// file returns the content of a key of the Secret. It is empty if the key does not exist.
func (s secret) file(key string) certificates.File {
	text, _ := s.data[key].(string)
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		content = nil
	}
	return certificates.File{Name: fmt.Sprintf("%s (%s)", called(s.ref), key), Content: content}
}

func (s secret) set(key string, content []byte) {
	s.data[key] = base64.StdEncoding.EncodeToString(content)
}

func (s secret) encode() (json.RawMessage, error) {
	content, err := json.Marshal(s.object)
	if err != nil {
		return nil, fmt.Errorf("write %s: its content cannot be encoded", called(s.ref))
	}
	return content, nil
}
