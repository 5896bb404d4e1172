package s3

import "slices"

// builtIn are the policies that every server has by itself.
var builtIn = []string{"readwrite", "readonly", "writeonly", "diagnostics", "consoleAdmin"}

// Beyond names what is not in other at all. Neither secrets nor contents are told.
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
