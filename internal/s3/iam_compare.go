package s3

import (
	"slices"
	"strings"
)

// builtInPolicies are the policies that every server has.
var builtInPolicies = []string{"readwrite", "readonly", "writeonly", "diagnostics", "consoleAdmin"}

// Changed returns the names of the entries that both have with different contents.
func (i *IAM) Changed(other *IAM) []string {
	alone := slices.Concat(i.NotIn(other), other.NotIn(i))
	return slices.DeleteFunc(i.Differences(other), func(name string) bool { return slices.Contains(alone, name) })
}

// IsBuiltIn reports whether name is the name of a built-in policy. Every server has these policies, and they differ
// between releases.
func IsBuiltIn(name string) bool {
	return slices.ContainsFunc(builtInPolicies, func(policy string) bool { return strings.HasPrefix(name, "policy "+policy+" (") })
}

// NotIn returns the names of the entries that other does not have. The names contain neither secrets nor contents.
func (i *IAM) NotIn(other *IAM) []string {
	var alone []string
	for _, k := range iamKinds {
		for _, name := range names(i.entries[k.file], nil) {
			_, there := other.entries[k.file][name]
			if there || (k.file == "policies.json" && slices.Contains(builtInPolicies, name)) {
				continue
			}
			alone = append(alone, nameWithHash(k.kind+" "+name, i.entries[k.file][name]))
		}
	}
	return alone
}
