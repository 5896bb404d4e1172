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

// groups is the file of the groups.
const groups = "groups.json"

// iamKinds are the kinds of entries in an export, by the names of its files, in the order in which
// they can be removed.
var iamKinds = []struct{ file, kind string }{
	{"svcaccts.json", "service account"},
	{"user_mappings.json", "policy of user"},
	{"group_mappings.json", "policy of group"},
	{"stsuser_mappings.json", "policy of external user"},
	{groups, "group"},
	{"users.json", "user"},
	{"policies.json", "policy"},
}

// IAM are the users, groups, policies and service accounts of a server, with their secrets. Do not
// store it. Printing it does not show it.
type IAM struct {
	archive []byte
	// entries are by file and name.
	entries map[string]map[string]map[string]any
}

// String hides the contents.
func (*IAM) String() string { return "users and policies" }

// GoString hides the contents.
func (*IAM) GoString() string { return "users and policies" }

// ExportIAM reads all users, groups, policies and service accounts, but no temporary credentials.
func (c *Client) ExportIAM(ctx context.Context) (*IAM, error) {
	archive, err := c.request(ctx, http.MethodGet, admin+"/export-iam", "", nil)
	if err != nil {
		return nil, fmt.Errorf("export the users and policies of %s: %w", c, explain(err))
	}
	iam, err := ReadIAM(archive)
	if lacking := (*PartialIAMError)(nil); errors.As(err, &lacking) {
		return nil, fmt.Errorf("export the users and policies of %s: %w", c, lacking)
	}
	if err != nil {
		// Without the cause: it may quote what it could not read.
		return nil, fmt.Errorf("the exported users and policies of %s cannot be read", c)
	}
	return iam, nil
}

// PartialIAMError names the files that an export does not have. A server that fails during an
// export sends what it has so far, and reports success.
type PartialIAMError struct{ Lacks []string }

func (e *PartialIAMError) Error() string {
	return fmt.Sprintf("the export ends early, without %s; see the server's log, and retry", strings.Join(e.Lacks, ", "))
}

// ReadIAM reads the export of a server: a zip archive with one JSON file for each kind, even if
// there are no entries. It returns a [PartialIAMError] if some are missing: EKCO would remove their
// entries from another server.
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
	document, err := io.ReadAll(io.LimitReader(content, answerLimit)) // to its end, where its checksum is
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
		unordered(entry)
	}
	i.entries[path.Base(file.Name)] = entries
	return nil
}

// unordered sorts the lists of a document. Their order has no meaning, and servers write sets in
// any order.
func unordered(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			unordered(inner)
		}
	case []any:
		for _, inner := range value {
			unordered(inner)
		}
		slices.SortFunc(value, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
}

// marked adds a short hash of its content to the name of an entry, so that a person releases this
// content by that name. The hash leaves out the secret: it would help to guess it.
func marked(name string, entry map[string]any) string {
	open := maps.Clone(entry)
	delete(open, "secretKey")
	return name + " (" + mark(open) + ")"
}

// mark is a short hash of a value that was read from JSON.
func mark(content any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", content)) // with maps in the order of their keys
	return hex.EncodeToString(sum[:4])
}

// Differences names the entries that differ from other. It contains neither secrets nor contents.
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
				differ = append(differ, marked(k.kind+" "+name, entry))
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

// ImportIAM gives the server the users, groups, policies and service accounts of want, and names
// the entries that the server does not accept. It removes other entries of the server only if may
// returns true for their name.
func (c *Client) ImportIAM(ctx context.Context, want *IAM, may func(name string) bool) ([]string, error) {
	have, err := c.ExportIAM(ctx)
	if err != nil || len(want.Differences(have)) == 0 {
		return nil, err
	}
	if err := c.removeIAM(ctx, want, have, may); err != nil {
		return nil, err
	}
	if _, err := c.request(ctx, http.MethodPut, admin+"/import-iam", "", want.archive); err != nil {
		return nil, fmt.Errorf("import users and policies to %s: %w", c, explain(err))
	}
	if err := c.setGroups(ctx, want); err != nil {
		return nil, err
	}
	// The import does not say what it left out.
	have, err = c.ExportIAM(ctx)
	if err != nil {
		return nil, err
	}
	kept := have.Beyond(want)
	return slices.DeleteFunc(want.Differences(have), func(name string) bool { return slices.Contains(kept, name) }), nil
}

// setGroups enables and disables groups: the import enables all.
func (c *Client) setGroups(ctx context.Context, want *IAM) error {
	for name, group := range want.entries[groups] {
		status, _ := group["status"].(string)
		query := url.Values{"group": {name}, "status": {status}}.Encode()
		if _, err := c.request(ctx, http.MethodPut, admin+"/set-group-status", query, nil); err != nil {
			return fmt.Errorf("set the status of group %s on %s: %w", name, c, explain(err))
		}
	}
	return nil
}

// removeIAM removes entries that are not wanted: the import removes nothing.
func (c *Client) removeIAM(ctx context.Context, want, have *IAM, may func(name string) bool) error {
	extra := have.Beyond(want)
	for _, k := range iamKinds {
		for _, name := range slices.Sorted(maps.Keys(have.entries[k.file])) {
			entry, wanted := have.entries[k.file][name], want.entries[k.file][name]
			if full := marked(k.kind+" "+name, entry); slices.Contains(extra, full) && !may(full) {
				continue
			}
			var err error
			if k.file == groups {
				err = c.shrink(ctx, name, entry, wanted)
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
	_, err := c.request(ctx, method, admin+call, query.Encode(), nil)
	return err
}

// shrink removes the members of a group that are not wanted, or the group with all of them.
func (c *Client) shrink(ctx context.Context, name string, have, want map[string]any) error {
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

// removeMembers removes members from a group. Without members it removes the group, which must be
// empty.
func (c *Client) removeMembers(ctx context.Context, group string, members []string) error {
	body, err := json.Marshal(map[string]any{"group": group, "members": members, "isRemove": true})
	if err != nil {
		return err
	}
	_, err = c.request(ctx, http.MethodPut, admin+"/update-group-members", "", body)
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
