// mdBook's highlight.js does not know CUDA. mdBook has already processed the blocks when this script runs.
for (const block of document.querySelectorAll("code.language-cuda")) {
    block.classList.replace("language-cuda", "language-cpp");
    hljs.highlightBlock(block);
}
