package s3

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // S3 asks for it with some settings
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// answerLimit is the maximum size of an answer in bytes: enough for the users and policies of any cluster, and small
// enough for the memory of the operator.
const answerLimit = 16 << 20

// requestLimit is the timeout of a request that neither lists objects nor transfers content.
const requestLimit = time.Minute

// defaultRegion is the region of a server that has no region in its settings.
const defaultRegion = "us-east-1"

// request sends a request that minio-go does not support, or whose unknown fields minio-go drops. It sends the path
// unchanged.
func (c *Client) request(ctx context.Context, method, path, query string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	response, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	return readAnswer(response)
}

// readAnswer reads an answer to its end.
func readAnswer(response *http.Response) ([]byte, error) {
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err == nil && len(answer) > answerLimit {
		err = fmt.Errorf("the answer has more than %d bytes", answerLimit)
	}
	return answer, err
}

// send sends a request that is signed for the region of the server. It returns an error if the HTTP status is not
// a success.
func (c *Client) send(ctx context.Context, method, path, query string, body []byte) (*http.Response, error) {
	region, _ := c.region.Load().(string)
	if region == "" {
		region = defaultRegion
	}
	response, err := c.sendTo(ctx, region, method, path, query, body)
	// A server with its own region reports it.
	if other := minio.ToErrorResponse(err).Region; err != nil && other != "" && other != region {
		c.region.Store(other)
		return c.sendTo(ctx, other, method, path, query, body)
	}
	return response, err
}

func (c *Client) sendTo(ctx context.Context, region, method, path, query string, body []byte) (*http.Response, error) {
	target := url.URL{Scheme: c.core.EndpointURL().Scheme, Host: c.core.EndpointURL().Host, Path: path, RawQuery: query}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	request.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	if len(body) > 0 {
		digest := md5.Sum(body) //nolint:gosec // no secret
		request.Header.Set("Content-Md5", base64.StdEncoding.EncodeToString(digest[:]))
	}
	signed := signer.SignV4(*request, c.endpoint.AccessKey, c.endpoint.SecretKey, "", region)
	response, err := c.httpClient().Do(signed)
	if err != nil || response.StatusCode/100 == 2 {
		return response, err
	}
	answer, err := readAnswer(response)
	if err != nil {
		return nil, err
	}
	return nil, parseRefusal(response.StatusCode, answer)
}

// parseRefusal reads the server's error from an answer.
func parseRefusal(status int, answer []byte) error {
	response := minio.ErrorResponse{StatusCode: status}
	// The administrator's API answers in JSON, but in XML if it refuses credentials.
	if json.Unmarshal(answer, &response) != nil && xml.Unmarshal(answer, &response) != nil || response.Code == "" {
		response.Code, response.Message = http.StatusText(status), http.StatusText(status)
	}
	return response
}
