# The Cranfield collection: 1,400 abstracts, 225 questions, graded judgments (1 is best).
bunzip2 -k -c data/cranfield/cran.all.1400.bz2 > cran.all.1400
bunzip2 -k -c data/cranfield/cran.qry.bz2 > cran.qry
bunzip2 -k -c data/cranfield/cranqrel.bz2 > cranqrel

# Learn on top of the tf-idf cosine, and measure on held-out questions.
hdsl rank cran.all.1400 --queries cran.qry --judgments cranqrel --number-queries \
    --lower-is-better --stem english --stop-words english --folds 3 \
    --save-vocab vocab.txt -o cran.hdsl

# Rank the documents of one question.
hdsl vectorize cran.all.1400 --vocab vocab.txt -o docs.svm -q
hdsl vectorize cran.qry --vocab vocab.txt -o questions.svm -q
hdsl neighbors cran.hdsl --train docs.svm questions.svm --rows 0 -k 5
