package kotsadm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// bootstrapExpect is rqlite's flag for the expected number of members.
const bootstrapExpect = "-bootstrap-expect"

// statefulSet is the part that EKCO reads.
type statefulSet struct {
	Metadata struct {
		UID        string `json:"uid"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int `json:"replicas"`
		Template struct {
			Spec struct {
				Containers []struct {
					Image string   `json:"image"`
					Args  []string `json:"args"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status status `json:"status"`
}

// status is what the StatefulSet controller reports. It counts ready pods and updated ones (of the newest
// revision), but does not name them.
type status struct {
	ObservedGeneration int64  `json:"observedGeneration"`
	Replicas           int    `json:"replicas"`
	ReadyReplicas      int    `json:"readyReplicas"`
	UpdatedReplicas    int    `json:"updatedReplicas"`
	UpdateRevision     string `json:"updateRevision"`
}

func decode(raw json.RawMessage, err error) (statefulSet, error) {
	var read statefulSet
	if err == nil {
		err = json.Unmarshal(raw, &read)
	}
	if err != nil {
		return statefulSet{}, fmt.Errorf("read %s: %w", Ref, err)
	}
	return read, nil
}

func (s statefulSet) facts() journal.KotsadmFacts {
	facts := journal.KotsadmFacts{UID: s.Metadata.UID, Generation: s.Metadata.Generation, Replicas: 1}
	if s.Spec.Replicas != nil {
		facts.Replicas = *s.Spec.Replicas
	}
	if containers := s.Spec.Template.Spec.Containers; len(containers) > 0 {
		facts.Image = containers[0].Image
		if at, attached := findExpect(containers[0].Args); at >= 0 {
			facts.Expect = strings.TrimPrefix(containers[0].Args[at], attached)
		}
	}
	return facts
}

// findExpect returns the index of the argument with the number of members, and the text before the number; -1
// for none. rqlite also has a flag with a longer name.
func findExpect(args []string) (at int, attached string) {
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, bootstrapExpect+"="):
			return i, bootstrapExpect + "="
		case arg == bootstrapExpect && i+1 < len(args):
			return i + 1, ""
		}
	}
	return -1, ""
}

var errShape = errors.New("it lacks fields that every StatefulSet has")

// withReplicas returns the object with this many replicas and members. All other fields, known or not, stay as
// they are.
func withReplicas(raw []byte, replicas int) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // numbers stay as they are written
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return nil, errShape
	}
	spec["replicas"] = replicas
	setExpected(spec, replicas)
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(object)
	return encoded.Bytes(), err
}

// setExpected sets the number in the argument of the first container, if it has that argument.
func setExpected(spec map[string]any, members int) {
	template, _ := spec["template"].(map[string]any)
	podSpec, _ := template["spec"].(map[string]any)
	containers, _ := podSpec["containers"].([]any)
	if len(containers) == 0 {
		return
	}
	container, _ := containers[0].(map[string]any)
	args, _ := container["args"].([]any)
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i], _ = arg.(string)
	}
	if at, attached := findExpect(texts); at >= 0 {
		args[at] = attached + fmt.Sprint(members)
	}
}
