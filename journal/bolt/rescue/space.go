package rescue

// Space returns the size of a bbolt file, and how much of it is in free pages. The caller must hold a read
// transaction, so that pages do not change.
func Space(path string) (size, free int64, err error) {
	file, err := openPages(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	list, err := file.freelist()
	if err != nil {
		return 0, 0, err
	}
	return file.size, int64(len(list)) * file.pageSize, nil
}
