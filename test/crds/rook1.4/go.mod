module github.com/replicatedhq/ekco/test/crds/rook1.4

go 1.26.0

require github.com/rook/rook v1.4.9
