package s3_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/internal/s3"
)

// exported is an archive with these files.
func exported(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for name, content := range files {
		// Not compressed, so that a byte of it can be found and changed.
		file, err := w.CreateHeader(&zip.FileHeader{Name: "iam-assets/" + name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// allFiles are those of an export, of a server with one user.
func allFiles() map[string]string {
	return map[string]string{
		"policies.json": "{}", "users.json": `{"app":{"secretKey":"s3cr3t","status":"enabled"}}`, "groups.json": "{}", "svcaccts.json": "{}",
		"user_mappings.json": "{}", "group_mappings.json": "{}", "stsuser_mappings.json": "{}",
	}
}

func TestAnExportThatLacksSomethingIsNone(t *testing.T) {
	if _, err := s3.ReadIAM(exported(t, allFiles())); err != nil {
		t.Fatal(err)
	}
	for name := range allFiles() {
		files := allFiles()
		delete(files, name)
		_, err := s3.ReadIAM(exported(t, files))
		var lacking *s3.PartialIAMError
		if !errors.As(err, &lacking) || !slices.Equal(lacking.Lacks, []string{name}) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestAnExportThatWasChangedUnderWayIsNone(t *testing.T) {
	archive := exported(t, allFiles())
	archive[bytes.Index(archive, []byte("s3cr3t"))] = 'x'
	if _, err := s3.ReadIAM(archive); err == nil {
		t.Error("its checksum is not looked at")
	}
}
