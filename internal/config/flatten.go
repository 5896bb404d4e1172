package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// plainWord matches text that needs no quotes in YAML. Quotes would turn a number or a boolean into text.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._/@:-]*[A-Za-z0-9])?$`)

// Flatten returns the settings of a YAML file with each key and its value on one line, for scripts that read lines.
// [Load] reads the same settings from the result as from the file. Flatten omits comments and keys without a value.
// Errors contain path.
func Flatten(path string, content []byte) ([]byte, error) {
	root, err := yamlRoot(path, content)
	if root == nil || err != nil {
		return nil, err
	}
	if _, err := yamlSettings(path, root); err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if value.Tag == "!!null" {
			continue
		}
		text, err := flatValue(value)
		if err != nil {
			return nil, fmt.Errorf("configuration file %s line %d: write key %s on one line: %w", path, key.Line, key.Value, err)
		}
		fmt.Fprintf(&lines, "%s: %s\n", quoteUnlessPlain(key.Value), text)
	}
	return lines.Bytes(), nil
}

// flatValue returns a value as one line of YAML. A quoted value stays quoted, so that "1.0" does not become a number.
func flatValue(value *yaml.Node) (string, error) {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case value.Kind == yaml.ScalarNode && value.Style&quoted != 0:
		return quote(value.Value), nil
	case value.Kind == yaml.ScalarNode:
		return quoteUnlessPlain(value.Value), nil
	}
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return "", fmt.Errorf("decode it: %w", err)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text) // JSON is YAML
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(decoded); err != nil {
		return "", fmt.Errorf("encode it: %w", err)
	}
	return strings.TrimSpace(text.String()), nil
}

func quoteUnlessPlain(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return quote(text)
}

// quote returns text in YAML's double quotes. The escapes are those of the kURL add-on's function ekco_set, because the
// add-on compares the results.
func quote(text string) string {
	var quoted strings.Builder
	quoted.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '\\' || r == '"':
			quoted.WriteRune('\\')
			quoted.WriteRune(r)
		case r == '\n':
			quoted.WriteString(`\n`)
		case r == '\r':
			quoted.WriteString(`\r`)
		case r == '\t':
			quoted.WriteString(`\t`)
		case r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029' || r == '\ufeff':
			fmt.Fprintf(&quoted, `\u%04x`, r)
		default:
			quoted.WriteRune(r)
		}
	}
	quoted.WriteByte('"')
	return quoted.String()
}
