package s3

import (
	"slices"
	"strings"
)

// builtIn are the policies that every server has.
var builtIn = []string{"readwrite", "readonly", "writeonly", "diagnostics", "consoleAdmin"}

// Changed names the entries that both have with different contents.
func (i *IAM) Changed(other *IAM) []string {
	alone := slices.Concat(i.Beyond(other), other.Beyond(i))
	return slices.DeleteFunc(i.Differences(other), func(name string) bool { return slices.Contains(alone, name) })
}

// IsBuiltIn reports whether this is the name of a policy that every server has, and that differs
// between releases.
func IsBuiltIn(name string) bool {
	return slices.ContainsFunc(builtIn, func(policy string) bool { return strings.HasPrefix(name, "policy "+policy+" (") })
}

// Beyond names the entries that other does not have at all. It contains neither secrets nor
// contents.
func (i *IAM) Beyond(other *IAM) []string {
	var alone []string
	for _, k := range iamKinds {
		for _, name := range names(i.entries[k.file], nil) {
			_, there := other.entries[k.file][name]
			if there || (k.file == "policies.json" && slices.Contains(builtIn, name)) {
				continue
			}
			alone = append(alone, marked(k.kind+" "+name, i.entries[k.file][name]))
		}
	}
	return alone
}
