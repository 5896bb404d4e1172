package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// maxFileSize is the maximum size of a configuration file. A ConfigMap cannot be larger.
const maxFileSize = 1 << 20

// extensions are the supported file types, in the order in which a directory is searched. JSON is parsed as
// YAML.
var extensions = []string{".json", ".toml", ".yaml", ".yml"}

// setting is one key of a file, as text.
type setting struct {
	name, text, origin string
	// problem says which kind of value is expected, if this value is not plain text.
	problem string
	// explicit is set for flags and environment variables.
	explicit bool
}

// find returns the first file named config.<extension> in the directories, or "" if there is none. It skips a directory
// that EKCO may not read: in a container, $HOME often belongs to another user.
func find(dirs []string) (string, error) {
	for _, dir := range dirs {
		for _, extension := range extensions {
			path := filepath.Join(dir, "config"+extension)
			info, err := os.Stat(path)
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			case err != nil:
				return "", fmt.Errorf("look for a configuration file: %w", err)
			case !info.IsDir():
				return path, nil
			}
		}
	}
	return "", nil
}

func readFile(path string) ([]setting, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration file: %w", err)
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the configuration file %s: %w", path, err)
	case len(content) > maxFileSize:
		return nil, fmt.Errorf("read the configuration file %s: it is larger than %d bytes", path, maxFileSize)
	}
	return parseFile(path, content)
}

// parseFile reads the settings of a file. Its errors name the file and, where
// there is one, the line.
func parseFile(path string, content []byte) ([]setting, error) {
	switch filepath.Ext(path) {
	case ".json", ".yaml", ".yml":
		return parseYAML(path, content)
	case ".toml":
		return parseTOML(path, content)
	}
	return nil, fmt.Errorf("read the configuration file %s: its name must end in one of %s",
		path, strings.Join(extensions, ", "))
}

func parseYAML(path string, content []byte) ([]setting, error) {
	root, err := yamlRoot(path, content)
	if root == nil || err != nil {
		return nil, err
	}
	return yamlSettings(path, root)
}

// yamlRoot returns the keys and values of a file, or nil if it has none.
func yamlRoot(path string, content []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		// The parser may report the line before the error, so the message says "near".
		return nil, fmt.Errorf("configuration file %s is not valid YAML, near %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
		return nil, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("configuration file %s line %d: want keys with values, like \"clear_dead_nodes: true\"", path, root.Line)
	}
	return root, nil
}

func yamlSettings(path string, root *yaml.Node) ([]setting, error) {
	var settings []setting
	lines := make(map[string]int)
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		s := setting{name: strings.ToLower(name.Value), origin: fmt.Sprintf("%s line %d", path, name.Line)}
		if first, ok := lines[s.name]; ok {
			return nil, fmt.Errorf("configuration file %s line %d: key %s is set already in line %d", path, name.Line, s.name, first)
		}
		lines[s.name] = name.Line
		var absent bool
		if s.text, s.problem, absent = scalarText(value); !absent {
			settings = append(settings, s)
		}
	}
	return settings, nil
}

// scalarText returns a value as text. A list of plain values is joined with
// commas. A key without a value counts as absent.
func scalarText(value *yaml.Node) (text, problem string, absent bool) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	switch value.Kind {
	case yaml.ScalarNode:
		return value.Value, "", value.Tag == "!!null"
	case yaml.SequenceNode:
		var parts []string
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode {
				return "", "a list of plain values", false
			}
			parts = append(parts, item.Value)
		}
		return strings.Join(parts, ","), "", false
	}
	return "", "a plain value", false
}

func parseTOML(path string, content []byte) ([]setting, error) {
	var values map[string]any
	if err := toml.Unmarshal(content, &values); err != nil {
		if where, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := where.Position()
			return nil, fmt.Errorf("configuration file %s line %d is not valid TOML: %w", path, line, err)
		}
		return nil, fmt.Errorf("configuration file %s is not valid TOML: %w", path, err)
	}
	var settings []setting
	for name, value := range values {
		s := setting{name: strings.ToLower(name), origin: path}
		switch value := value.(type) {
		case string, bool, int64, float64:
			s.text = fmt.Sprint(value)
		case []any:
			parts := make([]string, 0, len(value))
			for _, item := range value {
				parts = append(parts, fmt.Sprint(item))
			}
			s.text = strings.Join(parts, ",")
		default:
			s.problem = "a plain value"
		}
		settings = append(settings, s)
	}
	return settings, nil
}
