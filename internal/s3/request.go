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

// answerLimit is how many bytes of an answer are read: enough for the users and
// policies of any cluster, and no more than the operator has room for.
const answerLimit = 16 << 20

// requestLimit is how long a server may take for a question that is no listing
// and has no content.
const requestLimit = time.Minute

// defaultRegion is that of a server that was given none.
const defaultRegion = "us-east-1"

// request asks for what minio-go has no function for, or only one that understands
// the answer and so loses what it does not know. The path is as it is sent.
func (c *Client) request(ctx context.Context, method, path, query string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	response, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	return read(response)
}

// read reads an answer to its end.
func read(response *http.Response) ([]byte, error) {
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err == nil && len(answer) > answerLimit {
		err = fmt.Errorf("the answer has more than %d bytes", answerLimit)
	}
	return answer, err
}

// send sends a request, signed for the region that the server has, and returns the answer unless that is a refusal.
func (c *Client) send(ctx context.Context, method, path, query string, body []byte) (*http.Response, error) {
	region, _ := c.region.Load().(string)
	if region == "" {
		region = defaultRegion
	}
	response, err := c.sendTo(ctx, region, method, path, query, body)
	// A server with a region of its own says which.
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
	response, err := c.caller().Do(signed)
	if err != nil || response.StatusCode/100 == 2 {
		return response, err
	}
	answer, err := read(response)
	if err != nil {
		return nil, err
	}
	return nil, refusal(response.StatusCode, answer)
}

// refusal is what the server says of why it did not do as it was asked.
func refusal(status int, answer []byte) error {
	response := minio.ErrorResponse{StatusCode: status}
	// The administrator's API answers in JSON, or in XML when it comes to credentials.
	if json.Unmarshal(answer, &response) != nil && xml.Unmarshal(answer, &response) != nil || response.Code == "" {
		response.Code, response.Message = http.StatusText(status), http.StatusText(status)
	}
	return response
}
