module github.com/libopenstorage/secrets

go 1.26.0
