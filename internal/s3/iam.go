package s3

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// groupsFile is the file of the groups.
const groupsFile = "groups.json"

// iamKinds are the kinds of entries in an export with their file names, in the order in which EKCO can remove
// entries.
var iamKinds = []struct{ file, kind string }{
	{"svcaccts.json", "service account"},
	{"user_mappings.json", "policy of user"},
	{"group_mappings.json", "policy of group"},
	{"stsuser_mappings.json", "policy of external user"},
	{groupsFile, "group"},
	{"users.json", "user"},
	{"policies.json", "policy"},
}

// IAM has the users, groups, policies and service accounts of a server, with their secrets. Do not store it.
// Printing it shows no contents.
type IAM struct {
	archive []byte
	// entries has the entries by file name and entry name.
	entries map[string]map[string]map[string]any
}

// String hides the contents.
func (*IAM) String() string { return "users and policies" }

// GoString hides the contents.
func (*IAM) GoString() string { return "users and policies" }

// ExportIAM reads all users, groups, policies and service accounts, but no temporary credentials.
func (c *Client) ExportIAM(ctx context.Context) (*IAM, error) {
	archive, err := c.request(ctx, http.MethodGet, adminPath+"/export-iam", "", nil)
	if err != nil {
		return nil, fmt.Errorf("export the users and policies of %s: %w", c, explain(err))
	}
	iam, err := ReadIAM(archive)
	if lacking := (*PartialIAMError)(nil); errors.As(err, &lacking) {
		return nil, fmt.Errorf("export the users and policies of %s: %w", c, lacking)
	}
	if err != nil {
		// Leave out the cause, because it may quote secrets.
		return nil, fmt.Errorf("the exported users and policies of %s cannot be read", c)
	}
	return iam, nil
}

// PartialIAMError names the files that an export lacks. If a server fails during an export, it sends an incomplete
// archive and reports success.
type PartialIAMError struct{ Lacks []string }

func (e *PartialIAMError) Error() string {
	return fmt.Sprintf("the export ends early, without %s; see the server's log, and retry", strings.Join(e.Lacks, ", "))
}

// ReadIAM reads the export of a server: a zip archive with one JSON file for each kind, even for a kind without
// entries. It returns a [PartialIAMError] if a file is missing, because EKCO would remove the entries of that kind
// from the other server.
func ReadIAM(archive []byte) (*IAM, error) {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	iam := &IAM{archive: archive, entries: make(map[string]map[string]map[string]any)}
	for _, file := range files.File {
		if err := iam.read(file); err != nil {
			return nil, err
		}
	}
	var lacks []string
	for _, k := range iamKinds {
		if _, there := iam.entries[k.file]; !there {
			lacks = append(lacks, k.file)
		}
	}
	if len(lacks) > 0 {
		return nil, &PartialIAMError{lacks}
	}
	return iam, nil
}

func (i *IAM) read(file *zip.File) error {
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	document, err := io.ReadAll(io.LimitReader(content, answerLimit)) // reading to the end verifies the checksum
	if err != nil {
		return err
	}
	var entries map[string]map[string]any
	if err := json.Unmarshal(document, &entries); err != nil {
		return err
	}
	for _, entry := range entries {
		// The time of the last change and the format version differ between servers.
		delete(entry, "updatedAt")
		delete(entry, "version")
		sortLists(entry)
	}
	i.entries[path.Base(file.Name)] = entries
	return nil
}

// sortLists sorts the lists of a document, because servers write sets in any order.
func sortLists(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			sortLists(inner)
		}
	case []any:
		for _, inner := range value {
			sortLists(inner)
		}
		slices.SortFunc(value, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
}

// nameWithHash adds a short hash of an entry's content to its name, so that an administrator who accepts the name
// accepts exactly this content. The hash leaves out the secret, because a hash would help to guess it.
func nameWithHash(name string, entry map[string]any) string {
	open := maps.Clone(entry)
	delete(open, "secretKey")
	return name + " (" + shortHash(open) + ")"
}

// shortHash returns a short hash of a value that was read from JSON.
func shortHash(content any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", content)) // fmt sorts maps by key
	return hex.EncodeToString(sum[:4])
}

// Differences returns the names of the entries that differ. The names contain neither secrets nor contents.
func (i *IAM) Differences(other *IAM) []string {
	var differ []string
	for _, k := range iamKinds {
		ours, theirs := i.entries[k.file], other.entries[k.file]
		for _, name := range names(ours, theirs) {
			entry, is := ours[name]
			if !is {
				entry = theirs[name]
			}
			if !reflect.DeepEqual(ours[name], theirs[name]) {
				differ = append(differ, nameWithHash(k.kind+" "+name, entry))
			}
		}
	}
	return differ
}

func names(one, other map[string]map[string]any) []string {
	all := slices.Collect(maps.Keys(one))
	all = slices.AppendSeq(all, maps.Keys(other))
	slices.Sort(all)
	return slices.Compact(all)
}

// ImportIAM gives the server the users, groups, policies and service accounts of want. It removes other entries
// of the server only if may returns true for their name. It returns the names of the entries that the server does not
// accept.
func (c *Client) ImportIAM(ctx context.Context, want *IAM, may func(name string) bool) ([]string, error) {
	have, err := c.ExportIAM(ctx)
	if err != nil || len(want.Differences(have)) == 0 {
		return nil, err
	}
	if err := c.removeIAM(ctx, want, have, may); err != nil {
		return nil, err
	}
	if _, err := c.request(ctx, http.MethodPut, adminPath+"/import-iam", "", want.archive); err != nil {
		return nil, fmt.Errorf("import users and policies to %s: %w", c, explain(err))
	}
	if err := c.setGroups(ctx, want); err != nil {
		return nil, err
	}
	// The server does not report which entries it left out.
	have, err = c.ExportIAM(ctx)
	if err != nil {
		return nil, err
	}
	kept := have.NotIn(want)
	return slices.DeleteFunc(want.Differences(have), func(name string) bool { return slices.Contains(kept, name) }), nil
}

// setGroups enables or disables each group, because the import enables all groups.
func (c *Client) setGroups(ctx context.Context, want *IAM) error {
	for name, group := range want.entries[groupsFile] {
		status, _ := group["status"].(string)
		query := url.Values{"group": {name}, "status": {status}}.Encode()
		if _, err := c.request(ctx, http.MethodPut, adminPath+"/set-group-status", query, nil); err != nil {
			return fmt.Errorf("set the status of group %s on %s: %w", name, c, explain(err))
		}
	}
	return nil
}

// removeIAM removes the entries that want does not have, because the import removes nothing.
func (c *Client) removeIAM(ctx context.Context, want, have *IAM, may func(name string) bool) error {
	extra := have.NotIn(want)
	for _, k := range iamKinds {
		for _, name := range slices.Sorted(maps.Keys(have.entries[k.file])) {
			entry, wanted := have.entries[k.file][name], want.entries[k.file][name]
			if full := nameWithHash(k.kind+" "+name, entry); slices.Contains(extra, full) && !may(full) {
				continue
			}
			var err error
			if k.file == groupsFile {
				err = c.removeExtraMembers(ctx, name, entry, wanted)
			} else if wanted == nil {
				err = c.removeEntry(ctx, k.file, name)
			}
			if err != nil {
				return fmt.Errorf("remove %s %s from %s: %w", k.kind, name, c, explain(err))
			}
		}
	}
	return nil
}

// removeEntry removes a user, policy or service account, or the policies of a user or group.
func (c *Client) removeEntry(ctx context.Context, file, name string) error {
	method := http.MethodDelete
	var call string
	var query url.Values
	switch file {
	case "svcaccts.json":
		call, query = "/delete-service-account", url.Values{"accessKey": {name}}
	case "users.json":
		call, query = "/remove-user", url.Values{"accessKey": {name}}
	case "policies.json":
		call, query = "/remove-canned-policy", url.Values{"name": {name}}
	default:
		group := strconv.FormatBool(file == "group_mappings.json")
		method, call, query = http.MethodPut, "/set-user-or-group-policy", url.Values{"userOrGroup": {name}, "isGroup": {group}, "policyName": {""}}
	}
	_, err := c.request(ctx, method, adminPath+call, query.Encode(), nil)
	return err
}

// removeExtraMembers removes the members of a group that want does not have. Without want it removes the whole group.
func (c *Client) removeExtraMembers(ctx context.Context, name string, have, want map[string]any) error {
	surplus := slices.DeleteFunc(members(have), func(member string) bool { return slices.Contains(members(want), member) })
	if len(surplus) > 0 {
		if err := c.removeMembers(ctx, name, surplus); err != nil {
			return err
		}
	}
	if want != nil {
		return nil
	}
	return c.removeMembers(ctx, name, []string{})
}

// removeMembers removes members from a group. If the list of members is empty, it removes the group. The group must
// be empty then.
func (c *Client) removeMembers(ctx context.Context, group string, members []string) error {
	body, err := json.Marshal(map[string]any{"group": group, "members": members, "isRemove": true})
	if err != nil {
		return err
	}
	_, err = c.request(ctx, http.MethodPut, adminPath+"/update-group-members", "", body)
	return err
}

// members returns the members of a group.
func members(group map[string]any) []string {
	list, _ := group["members"].([]any)
	all := make([]string, 0, len(list))
	for _, member := range list {
		all = append(all, fmt.Sprint(member))
	}
	return all
}
