package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// [Begin] adds one of these suffixes to the name of the old file, and then the UID of the file's cluster, if known, and
// the time.
const (
	foreignSuffix = ".of-cluster-"
	unknownSuffix = ".not-a-journal-"
	// asideFilesKept is how many renamed files [Begin] keeps.
	asideFilesKept = 3
)

// Begin creates a new journal in the place of a file that is not the journal of the cluster with this UID: an intact
// journal of another cluster, or a file without any trace of a journal in it or next to it. It renames that file to
// PATH.of-cluster-<UID>-<UTC time> or PATH.not-a-journal-<UTC time>, and records the new name in the second event of
// the new journal. It keeps the newest three of these renamed files and deletes older ones.
//
// Begin returns an error and changes nothing if the file at path is anything else, or not a regular file. Call it only
// if path and clusterUID are certainly right, as for the operator in its own pod.
func Begin(ctx context.Context, path string, options Options, clusterUID string) (journal.JournalReplaced, error) {
	neighbours := rescue.FindNeighbourFiles(path)
	lock, err := prepare(path, options)
	if err != nil {
		return journal.JournalReplaced{}, err
	}
	replaced, err := begin(ctx, path, options, clusterUID, neighbours)
	if err != nil {
		err = fmt.Errorf("begin a new journal: %w", err)
		return journal.JournalReplaced{}, neighbours.ReleaseLock(path, lock, false, err)
	}
	return replaced, files.Release(lock, false)
}

// begin does the work of [Begin]. The caller must hold the lock. If EKCO is killed, the file at path is either still
// the old file, or the complete new journal.
func begin(ctx context.Context, path string, options Options, clusterUID string, neighbours rescue.NeighbourFiles) (journal.JournalReplaced, error) {
	found, prefix, err := foreignFile(ctx, path, options, clusterUID, neighbours)
	if err != nil {
		return found, err
	}
	if err := files.RemoveUnfinished(path); err != nil {
		return found, err
	}
	if found.File, err = files.AsideName(path+prefix, options.clock()()); err != nil {
		return found, err
	}
	err = create(path+files.FreshSuffix, options.clock(), journal.Draft{
		Type: journal.TypeJournalReplaced, Subject: journal.JournalSubject, Actor: "journal", Payload: found,
	})
	if err == nil {
		err = files.SetAside(path, found.File)
	}
	if err == nil {
		err = files.Replace(path+files.FreshSuffix, path)
	}
	if err != nil {
		return found, fmt.Errorf("%w: %w", journal.ErrUnwritable, err)
	}
	removeOldAsideFiles(path, found.File)
	return found, nil
}

// foreignFile returns why the file at path is not the journal of the cluster, and the suffix for its new name.
func foreignFile(ctx context.Context, path string, options Options, clusterUID string, neighbours rescue.NeighbourFiles) (found journal.JournalReplaced, prefix string, err error) {
	if _, err := files.Regular(path); err != nil {
		return found, "", fmt.Errorf("%s: %w", path, err)
	}
	report, problem := rescue.Inspect(ctx, path, options.rescueOptions())
	switch err := neighbours.ClassifyError(path, options.OwnPath, problem); {
	case errors.Is(err, journal.ErrNotAJournal):
		found.Problem = "it has nothing of a journal"
		if errors.Is(problem, rescue.ErrBlank) {
			found.Problem = rescue.ErrBlank.Error()
		}
		return found, unknownSuffix, nil
	case err != nil:
		return found, "", err
	case report.ClusterUID == "" || clusterUID == "" || report.ClusterUID == clusterUID:
		return found, "", fmt.Errorf("%s is journal %s of cluster %q, but this is cluster %q: EKCO does not change the file", path, report.JournalID, report.ClusterUID, clusterUID)
	}
	stat, err := readStat(ctx, path)
	return journal.JournalReplaced{
		Problem:   fmt.Sprintf("it is of cluster %s, and this is cluster %s", report.ClusterUID, clusterUID),
		JournalID: report.JournalID, ClusterUID: report.ClusterUID, LastSeq: report.LastSeq, LastTime: stat.LastTime,
	}, foreignSuffix + nameSafe(report.ClusterUID) + "-", err
}

// readStat returns the [journal.Stat] of a verified file.
func readStat(ctx context.Context, path string) (journal.Stat, error) {
	store, err := start(path, Options{ReadOnly: true}, nil)
	if err != nil {
		return journal.Stat{}, err
	}
	stat, err := store.Stat(ctx)
	return stat, errors.Join(err, store.Close())
}

// nameSafe returns the UID with all characters replaced that a file's name should not have. Kubernetes' UIDs have none.
func nameSafe(uid string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, uid[:min(len(uid), 64)])
}

// asideSuffixes matches the suffixes of files that [Begin] has renamed.
var asideSuffixes = regexp.MustCompile(`^\.(?:of-cluster-[0-9A-Za-z_-]+|not-a-journal)-([0-9]{8}T[0-9]{6}Z(?:-[0-9]+)?)$`)

// removeOldAsideFiles removes files that Begin has renamed, except the file named now and the newest of the others. It
// ignores errors, because such files do no harm.
func removeOldAsideFiles(path, now string) {
	entries, _ := os.ReadDir(filepath.Dir(path))
	type aside struct{ name, at string }
	var others []aside
	for _, entry := range entries {
		end, ok := strings.CutPrefix(entry.Name(), filepath.Base(path))
		match := asideSuffixes.FindStringSubmatch(end)
		if ok && match != nil && entry.Name() != filepath.Base(now) {
			others = append(others, aside{entry.Name(), match[1]})
		}
	}
	slices.SortFunc(others, func(a, b aside) int { return strings.Compare(b.at, a.at) })
	for _, old := range others[min(len(others), asideFilesKept-1):] {
		_ = os.Remove(filepath.Join(filepath.Dir(path), old.name))
	}
}
