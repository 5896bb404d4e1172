package rescue

// Space tells how large a bbolt file is, and how much of it is in free pages. A read
// transaction of the caller keeps the pages it looks at from changing.
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
